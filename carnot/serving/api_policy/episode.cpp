#include "carnot/serving/api_policy/episode.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/env/environment_boundary.h"

namespace carnot {
namespace {

constexpr std::uint64_t kLargestSeed = (std::uint64_t{1} << 31) - 1;  // some servers take no more

std::vector<Message> messages_of(const Opening& prompt) {
  std::vector<Message> messages;
  if (!prompt.system.empty()) messages.push_back({.role = "system", .content = prompt.system});
  messages.insert(messages.end(), prompt.history.begin(), prompt.history.end());
  if (!prompt.user.empty()) messages.push_back({.role = "user", .content = prompt.user});
  return messages;
}

}  // namespace

std::string with_closing_tag(std::string text, const std::vector<std::string>& stop_strings) {
  std::size_t last = std::string::npos;
  std::string closing;
  for (const std::string& stop : stop_strings) {
    if (!stop.starts_with("</") || !stop.ends_with('>')) continue;
    const std::size_t open = text.rfind("<" + stop.substr(2)), close = text.rfind(stop);
    if (open == std::string::npos || (close != std::string::npos && close > open)) continue;
    if (last != std::string::npos && open < last) continue;
    last = open;
    closing = stop;
  }
  return text + closing;
}

EndpointEpisode::EndpointEpisode(std::function<std::unique_ptr<Environment>()> make,
                                 const EndpointEpisodeOptions& options, std::uint64_t seed)
    : make_(std::move(make)), options_(options), seed_(seed) {}

void EndpointEpisode::open() {
  environment_ = make_();
  if (!environment_) throw EnvironmentFailure("the factory made no environment");
  protocol_ = environment_->protocol();
  check_protocol(protocol_);
  const Opening opening = environment_->open();
  check_opening(opening);
  anchor_ = environment_->anchor();
  check_text("anchor()", anchor_);
  ground_truth_ = environment_->ground_truth();
  info_ = environment_->info();
  check_info(ground_truth_, info_);
  begin_context(opening);
}

void EndpointEpisode::begin_context(const Opening& prompt) {
  messages_.clear();
  context_tokens_ = 0;
  for (Message& message : messages_of(prompt)) add(std::move(message));
  tools_.clear();
  for (const ToolDescription& tool : prompt.tools) tools_.push_back(tool.json());
  prefix_ = prompt.assistant_prefix;
}

void EndpointEpisode::add(Message message) {
  transcript_.push_back(message);
  messages_.push_back(std::move(message));
}

ChatQuestion EndpointEpisode::question() const {
  const int wanted = options_.max_response_tokens > 0 ? options_.max_response_tokens : protocol_.max_response_tokens;
  const std::int64_t room = std::max<std::int64_t>(1, options_.max_context_tokens - context_tokens_);
  ChatQuestion question{.model = options_.model,
                        .messages = messages_,
                        .tools = tools_,
                        .temperature = options_.temperature,
                        .top_p = options_.top_p,
                        .max_tokens = static_cast<int>(std::min<std::int64_t>(wanted, room)),
                        .stop = protocol_.stop_strings};
  if (options_.temperature > 0) question.seed = derive_seed(seed_, "turn", turns_.size()) & kLargestSeed;
  return question;
}

PolicyResponse EndpointEpisode::heard(const ChatAnswer& answer) const {
  const bool cut = answer.finish_reason == "length";
  PolicyResponse response(cut ? answer.text : with_closing_tag(answer.text, protocol_.stop_strings));
  if (!prefix_.empty() && !stripped(response.text).starts_with(stripped(prefix_)))
    response.text = prefix_ + response.text;
  if (!tools_.empty()) response.tool_calls = answer.tool_calls;
  return response;
}

void EndpointEpisode::advance(ChatEndpoint& endpoint) {
  CARNOT_CHECK(!ended_, "the episode is over");
  if (!environment_) open();
  const ChatAnswer answer = endpoint.exchange(chat_request(question(), options_.extra));
  ++cost_.answers;
  cost_.tokens.prompt += answer.usage.prompt;
  cost_.tokens.completion += answer.usage.completion;
  context_tokens_ = answer.usage.prompt + answer.usage.completion;

  const PolicyResponse response = heard(answer);
  const bool cut = answer.finish_reason == "length";
  add({.role = "assistant", .content = response.text, .tool_calls = response.tool_calls});
  const Stopwatch watch;
  const Reply reply = step_alone(*environment_, response);
  check_reply(reply);
  turns_.push_back({.parent = static_cast<int>(turns_.size()) - 1,
                    .reward = reply.reward,
                    .penalty = reply.penalty,
                    .valid_action = reply.valid_action,
                    .anchor = anchor_,
                    .tool = reply.tool,
                    .status = reply.status,
                    .latency_ms = 1000 * watch.seconds()});
  if (reply.done && reply.outcome == Outcome::InfraFailed)
    throw EnvironmentFailure("the environment reports an infrastructure failure: " + reply.text.substr(0, 200));
  if (reply.done) {
    const bool ran_out = cut && reply.outcome == Outcome::Finished && !reply.success;
    return end(ran_out ? Outcome::OutOfTokens : reply.outcome, reply);
  }
  const int most = options_.max_turns > 0 ? options_.max_turns : protocol_.max_turns;
  if (std::ssize(turns_) >= most) return end(Outcome::OutOfTurns, reply);
  add_reply(reply);
  if (context_tokens_ >= options_.max_context_tokens) return end(Outcome::OutOfTokens, reply);
  anchor_ = environment_->anchor();
  check_text("anchor()", anchor_);
}

void EndpointEpisode::add_reply(const Reply& reply) {
  if (reply.form == ReplyForm::FreshPrompt) return begin_context(reply.prompt);
  if (reply.form != ReplyForm::ToolResult) return add({.role = "user", .content = reply.text});
  for (const ToolMessage& result : reply.results)
    add({.role = "tool", .content = result.text, .tool_call_id = result.call_id});
}

void EndpointEpisode::end(Outcome outcome, const Reply& reply) {
  ended_ = true;
  outcome_ = outcome;
  last_ = reply;
}

Tree EndpointEpisode::tree(const std::string& id, int sibling) const {
  Tree tree;
  tree.turns = turns_;
  if (tree.turns.empty()) tree.turns.emplace_back();
  Leaf leaf{.turn = static_cast<int>(tree.turns.size()) - 1, .sibling = sibling, .trajectory_id = id};
  leaf.outcome = ended_ ? outcome_ : Outcome::InfraFailed;
  for (const Turn& turn : tree.turns) leaf.score += turn.reward;
  leaf.success = ended_ && last_.done && last_.success;
  leaf.measures = last_.measures;
  leaf.answer = last_.answer;
  tree.leaves.push_back(std::move(leaf));
  return tree;
}

}  // namespace carnot
