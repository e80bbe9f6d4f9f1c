#include "carnot/core/rollout/demonstration.h"

#include <algorithm>
#include <exception>
#include <string>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

bool ends_with_any(std::string_view text, const std::vector<std::string>& stops) {
  return std::any_of(stops.begin(), stops.end(), [&](const std::string& stop) { return text.ends_with(stop); });
}

Result<std::vector<TokenId>> scripted_tokens(const Episode& episode, const ChatFamily& chat,
                                             const PolicyResponse& said) {
  const std::string prefix = episode.response({}).text;
  if (!said.text.starts_with(prefix))
    return Error{"the script's response must begin with '" + prefix + "', got '" + said.text.substr(0, 40) + "'"};
  const std::string_view content = std::string_view(said.text).substr(prefix.size());
  const bool calls = !said.tool_calls.empty();
  if (const Status taken = chat.check_takes_tools(); calls && !taken) return taken.error();
  const bool ends = calls || !ends_with_any(said.text, episode.protocol().stop_strings);
  auto tokens =
      calls ? chat.try_spoken_calls(content, said.tool_calls, prefix) : chat.try_spoken(content, prefix, ends);
  if (tokens && ends) tokens->push_back(episode.stop_tokens().front());
  return tokens;
}

Result<Tree> play_script(const EnvironmentFactory& factory, const ChatFamily& chat,
                         const DemonstrationOptions& options) {
  const std::shared_ptr<Environment> environment = factory.make_demonstrated(options.index, options.progress);
  if (!environment) return Error{"the factory made no environment"};
  const auto script = factory.script(*environment, options.progress, RandomStream(options.seed));
  if (!script) return Error{"the environment has no scripted agent to demonstrate it"};
  OpenedEnvironment opened = open_environment(environment);
  CARNOT_ASSIGN_OR_RETURN(auto prompt, render_prompt(chat, opened.opening));
  Episode episode(std::move(opened), std::move(prompt), chat, options.episode);

  Tree tree;
  tree.leaves.push_back({.trajectory_id = "demonstration." + std::to_string(options.index)});
  int tokens = static_cast<int>(episode.opening().tokens.size());
  std::string observation;
  Answer answer;
  Outcome outcome = Outcome::OutOfTurns;
  for (int turn = 0; turn < episode.max_turns() && outcome == Outcome::OutOfTurns; ++turn) {
    CARNOT_ASSIGN_OR_RETURN(const auto sampled, scripted_tokens(episode, chat, script->respond(observation)));
    answer = ask(*environment, episode.response(sampled));
    if (answer.reply.unscored) score_checked(*environment, {&answer.reply, 1});
    if (answer.reply.done && answer.reply.outcome == Outcome::InfraFailed)
      return Error{"the environment failed: " + answer.reply.text.substr(0, 200)};
    observation = shown_text(answer.reply);
    tokens += static_cast<int>(sampled.size());
    SpannedTokens rendered;
    if (answer.reply.done) {
      outcome = answer.reply.outcome;
    } else if (turn + 1 < episode.max_turns()) {
      CARNOT_ASSIGN_OR_RETURN(auto shown, episode.render_reply(sampled, answer.reply));
      rendered = std::move(shown);
      if (answer.reply.form == ReplyForm::FreshPrompt) tokens = 0;
      tokens += static_cast<int>(rendered.tokens.size());
      if (tokens >= options.episode.max_context_tokens) {
        outcome = Outcome::OutOfTokens;
        rendered = {};
      }
    }
    tree.turns.push_back(episode.close_turn(sampled, answer, rendered));
    tree.turns.back().parent = turn - 1;
    if (answer.reply.done) break;
  }
  tree.leaves[0].turn = static_cast<int>(tree.turns.size()) - 1;
  finish_leaf(tree, 0, outcome, answer.reply);
  return tree;
}

}  // namespace

Result<Tree> demonstrate(const EnvironmentFactory& factory, const ChatFamily& chat,
                         const DemonstrationOptions& options) {
  const std::string where = "demonstration of task " + std::to_string(options.index) + ": ";
  try {
    auto tree = play_script(factory, chat, options);
    if (!tree) return Error{where + tree.error().message};
    return tree;
  } catch (const CheckError&) {
    throw;
  } catch (const std::exception& failure) {
    return Error{where + failure.what()};
  }
}

}  // namespace carnot
