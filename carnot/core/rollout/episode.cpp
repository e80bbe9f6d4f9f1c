#include "carnot/core/rollout/episode.h"

#include <algorithm>
#include <exception>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/env/environment_boundary.h"

namespace carnot {
namespace {

Result<SpannedTokens> tokenised(const std::string& what, Result<SpannedTokens> rendered) {
  if (!rendered) return Error{what + " cannot be tokenised: " + rendered.error().message};
  return rendered;
}

bool ends_with_any(std::string_view text, const std::vector<std::string>& stops) {
  return std::any_of(stops.begin(), stops.end(), [&](const std::string& stop) { return text.ends_with(stop); });
}

std::vector<std::string> tool_texts(const Opening& opening) {
  std::vector<std::string> texts;
  for (const ToolDescription& tool : opening.tools) texts.push_back(tool.json());
  return texts;
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

void EpisodeOptions::fields(FieldVisitor& visit) {
  visit.field("max_context_tokens", max_context_tokens, "tokens of a trajectory, prompt included", at_least(2));
  visit.field("max_response_tokens", max_response_tokens, "tokens of one response; 0: the environment's limit",
              at_least(0));
  visit.field("max_turns", max_turns, "turns of a trajectory; 0: the environment's limit", at_least(0));
  visit.field("tags_are_action", tags_are_action, "count the tags around an action as action tokens");
}

OpenedEnvironment open_environment(std::shared_ptr<Environment> environment) {
  if (!environment) throw EnvironmentFailure("the factory made no environment");
  OpenedEnvironment opened;
  opened.protocol = environment->protocol();
  check_protocol(opened.protocol);
  opened.opening = environment->open();
  check_opening(opened.opening);
  opened.anchor = environment->anchor();
  check_text("anchor()", opened.anchor);
  opened.ground_truth = environment->ground_truth();
  opened.info = environment->info();
  check_info(opened.ground_truth, opened.info);
  opened.environment = std::move(environment);
  return opened;
}

Answer ask(Environment& environment, const PolicyResponse& response) {
  const Stopwatch watch;
  Answer answer;
  answer.reply = environment.step(response);
  check_reply(answer.reply);
  if (!answer.reply.done) answer.anchor = environment.anchor();
  check_text("anchor()", answer.anchor);
  answer.latency_ms = 1000 * watch.seconds();
  return answer;
}

Result<SpannedTokens> render_prompt(const ChatFamily& chat, const Opening& prompt) {
  if (const Status taken = chat.check_takes_tools(); !prompt.tools.empty() && !taken)
    return Error{"the environment offers tools (" + prompt.tools[0].name + "), and " + taken.error().message};
  std::vector<Message> messages;
  if (!prompt.system.empty()) messages.push_back({.role = "system", .content = prompt.system});
  messages.insert(messages.end(), prompt.history.begin(), prompt.history.end());
  if (!prompt.user.empty()) messages.push_back({.role = "user", .content = prompt.user});
  const std::vector<std::string> tools = tool_texts(prompt);
  if (const Status writable = chat.check_writable(messages, tools); !writable)
    return Error{"the prompt cannot be written: " + writable.error().message};
  return tokenised("the prompt", chat.try_render_opening(messages, prompt.assistant_prefix, tools));
}

Episode::Episode(OpenedEnvironment opened, SpannedTokens opening, const ChatFamily& chat, const EpisodeOptions& options)
    : opened_(std::move(opened)),
      chat_(&chat),
      options_(options),
      stop_tokens_(chat.stop_tokens()),
      opening_(std::move(opening)),
      prompt_(opening_),
      assistant_prefix_(opened_.opening.assistant_prefix),
      prefix_(assistant_prefix_),
      tools_(tool_texts(opened_.opening)),
      anchor_(opened_.anchor) {}

int Episode::max_turns() const { return options_.max_turns > 0 ? options_.max_turns : opened_.protocol.max_turns; }

int Episode::max_response_tokens() const {
  return options_.max_response_tokens > 0 ? options_.max_response_tokens : opened_.protocol.max_response_tokens;
}

bool Episode::closed(std::span<const TokenId> sampled) const {
  return !sampled.empty() && std::find(stop_tokens_.begin(), stop_tokens_.end(), sampled.back()) != stop_tokens_.end();
}

PolicyResponse Episode::response(std::span<const TokenId> sampled) const {
  std::string text = prefix_ + chat_->tokenizer().decode(closed(sampled) ? sampled.first(sampled.size() - 1) : sampled);
  return tools_.empty() ? PolicyResponse(std::move(text)) : chat_->parse_response(std::move(text), tools_);
}

// An inline reply needs an open message; after a closed one it becomes the next user message.
bool Episode::continues_message(std::span<const TokenId> sampled, const Reply& reply) const {
  return reply.form == ReplyForm::Inline && !closed(sampled);
}

Result<SpannedTokens> Episode::render_reply(std::span<const TokenId> sampled, const Reply& reply) const {
  if (reply.form == ReplyForm::FreshPrompt) return render_prompt(*chat_, reply.prompt);
  if (continues_message(sampled, reply)) return tokenised("the reply", chat_->try_render_inline(reply.text));
  std::vector<Message> messages;
  if (reply.form == ReplyForm::ToolResult) {
    for (const ToolMessage& result : reply.results)
      messages.push_back({.role = "tool", .content = result.text, .tool_call_id = result.call_id});
  } else {
    messages.push_back({.role = "user", .content = reply.text});
  }
  return tokenised("the reply", chat_->try_render_reply(messages, assistant_prefix_, closed(sampled)));
}

SpanGrammar Episode::grammar() const {
  const Protocol& protocol = opened_.protocol;
  const std::string think = "<" + protocol.think_tag + ">";
  return {.think_tag = protocol.think_tag,
          .action_tags = protocol.action_tags,
          .tags_are_action = options_.tags_are_action,
          .think_opened_by_prompt = !protocol.think_tag.empty() && prefix_.ends_with(think)};
}

Turn Episode::close_turn(std::span<const TokenId> sampled, const Answer& answer, const SpannedTokens& rendered) {
  const Reply& reply = answer.reply;
  const bool fresh = reply.form == ReplyForm::FreshPrompt && !rendered.tokens.empty();
  SpannedTokens all = std::move(prompt_);
  const int sampled_begin = static_cast<int>(all.tokens.size());
  SpannedTokens said;
  said.tokens.assign(sampled.begin(), sampled.end());
  said.spans = parse_response(chat_->tokenizer(), sampled, grammar()).spans;
  append(all, said);
  if (!fresh) append(all, rendered);
  played_.push_back({.response = response(sampled), .reply_key = key_of(reply)});

  Turn turn{.context = context_,
            .tokens = std::move(all.tokens),
            .sampled_begin = sampled_begin,
            .sampled_end = sampled_begin + static_cast<int>(sampled.size()),
            .spans = std::move(all.spans),
            .reward = reply.reward,
            .penalty = reply.penalty,
            .valid_action = reply.valid_action,
            .anchor = anchor_,
            .tool = reply.tool,
            .status = reply.status,
            .latency_ms = answer.latency_ms};
  prompt_ = fresh ? rendered : SpannedTokens{};
  context_ = fresh ? Context::Fresh : Context::Growing;
  if (fresh) assistant_prefix_ = reply.prompt.assistant_prefix;
  if (fresh) tools_ = tool_texts(reply.prompt);
  prefix_ = continues_message(sampled, reply) ? "" : assistant_prefix_;
  anchor_ = answer.anchor;
  return turn;
}

Episode Episode::branch(std::shared_ptr<Environment> copy) const {
  Episode episode = *this;
  episode.opened_.environment = std::move(copy);
  return episode;
}

void finish_leaf(Tree& tree, int leaf, Outcome outcome, const Reply& reply) {
  Leaf& end = tree.leaves[leaf];
  end.outcome = outcome;
  end.score = 0;
  for (int turn : path(tree, leaf)) end.score += tree.turns[turn].reward;
  end.success = reply.done && reply.success;
  end.measures = reply.measures;
  end.answer = reply.answer;
}

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
