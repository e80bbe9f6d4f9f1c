#include "carnot/rollout/episode.h"

#include <algorithm>

#include "carnot/base/stopwatch.h"
#include "carnot/env/environment_boundary.h"

namespace carnot {

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

Answer ask(Environment& environment, std::string_view response) {
  const Stopwatch watch;
  Answer answer;
  answer.reply = environment.step(response);
  check_reply(answer.reply);
  if (!answer.reply.done) answer.anchor = environment.anchor();
  check_text("anchor()", answer.anchor);
  answer.latency_ms = 1000 * watch.seconds();
  return answer;
}

Episode::Episode(OpenedEnvironment opened, const ChatFamily& chat, const EpisodeOptions& options)
    : opened_(std::move(opened)),
      chat_(&chat),
      options_(options),
      stop_tokens_(chat.stop_tokens()),
      prefix_(opened_.opening.assistant_prefix),
      anchor_(opened_.anchor) {
  std::vector<Message> messages;
  if (!opened_.opening.system.empty()) messages.push_back({.role = "system", .content = opened_.opening.system});
  messages.push_back({.role = "user", .content = opened_.opening.user});
  opening_ = chat.render_opening(messages, prefix_);
}

int Episode::max_turns() const { return options_.max_turns > 0 ? options_.max_turns : opened_.protocol.max_turns; }

int Episode::max_response_tokens() const {
  return options_.max_response_tokens > 0 ? options_.max_response_tokens : opened_.protocol.max_response_tokens;
}

bool Episode::closed(std::span<const TokenId> sampled) const {
  return !sampled.empty() && std::find(stop_tokens_.begin(), stop_tokens_.end(), sampled.back()) != stop_tokens_.end();
}

std::string Episode::response_text(std::span<const TokenId> sampled) const {
  return prefix_ + chat_->tokenizer().decode(closed(sampled) ? sampled.first(sampled.size() - 1) : sampled);
}

// An inline reply needs an open message; behind a closed one it becomes the next user message.
bool Episode::continues_message(std::span<const TokenId> sampled, const Reply& reply) const {
  return reply.form == ReplyForm::Inline && !closed(sampled);
}

SpannedTokens Episode::render_reply(std::span<const TokenId> sampled, const Reply& reply) const {
  if (continues_message(sampled, reply)) return chat_->render_inline(reply.text);
  const Message message{.role = "user", .content = reply.text};
  return chat_->render_reply({&message, 1}, opened_.opening.assistant_prefix, closed(sampled));
}

SpanGrammar Episode::grammar() const {
  const Protocol& protocol = opened_.protocol;
  const std::string think = "<" + protocol.think_tag + ">";
  return {.think_tag = protocol.think_tag,
          .action_tags = protocol.action_tags,
          .tags_are_action = options_.tags_are_action,
          .think_opened_by_prompt = !protocol.think_tag.empty() && prefix_.ends_with(think)};
}

Turn Episode::close_turn(std::span<const TokenId> sampled, const Answer& answer, const SpannedTokens& observation) {
  SpannedTokens all;
  if (first_turn_) all = opening_;
  const int sampled_begin = static_cast<int>(all.tokens.size());
  SpannedTokens response;
  response.tokens.assign(sampled.begin(), sampled.end());
  response.spans = parse_response(chat_->tokenizer(), sampled, grammar()).spans;
  append(all, response);
  append(all, observation);

  const Reply& reply = answer.reply;
  Turn turn{.tokens = std::move(all.tokens),
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
  first_turn_ = false;
  prefix_ = continues_message(sampled, reply) ? "" : opened_.opening.assistant_prefix;
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

}  // namespace carnot
