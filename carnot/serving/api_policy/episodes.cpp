#include "carnot/serving/api_policy/episodes.h"

#include <algorithm>
#include <map>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/env/environment_boundary.h"
#include "carnot/core/env/environment_workers.h"

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

/// One trajectory: a conversation of messages, without tokens.
class EndpointEpisode {
 public:
  /// `make` makes the environment; called in the first advance(). `seed` is the trajectory's own, of the draws that a
  /// server makes where the temperature is above 0.
  EndpointEpisode(std::function<std::unique_ptr<Environment>()> make, const EndpointEpisodeOptions& options,
                  std::uint64_t seed)
      : make_(std::move(make)), options_(options), seed_(seed) {}

  /// Opens the environment if it is not open, asks the model, and hands its response to the environment. Slow; throws
  /// what the endpoint or the environment throws: then the trajectory has failed. REQUIRES: !ended().
  void advance(ChatEndpoint& endpoint) {
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

  bool ended() const { return ended_; }

  /// The trajectory: its turns without tokens, and its leaf. Of one that has not ended: an infrastructure failure.
  Tree tree(const std::string& id, int sibling) const {
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

  const EndpointCost& cost() const { return cost_; }
  const std::vector<std::string>& ground_truth() const { return ground_truth_; }
  const std::map<std::string, std::string>& info() const { return info_; }

  /// Everything that was said, in order; of an environment that begins again for each step, prompt after prompt.
  const std::vector<Message>& transcript() const { return transcript_; }

 private:
  void open() {
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

  void begin_context(const Opening& prompt) {
    messages_.clear();
    context_tokens_ = 0;
    for (Message& message : messages_of(prompt)) add(std::move(message));
    tools_.clear();
    for (const ToolDescription& tool : prompt.tools) tools_.push_back(tool.json());
    prefix_ = prompt.assistant_prefix;
  }

  ChatQuestion question() const {
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

  PolicyResponse heard(const ChatAnswer& answer) const {
    const bool cut = answer.finish_reason == "length";
    PolicyResponse response(cut ? answer.text : with_closing_tag(answer.text, protocol_.stop_strings));
    if (!prefix_.empty() && !stripped(response.text).starts_with(stripped(prefix_)))
      response.text = prefix_ + response.text;
    if (!tools_.empty()) response.tool_calls = answer.tool_calls;
    return response;
  }

  void add(Message message) {
    transcript_.push_back(message);
    messages_.push_back(std::move(message));
  }

  void add_reply(const Reply& reply) {
    if (reply.form == ReplyForm::FreshPrompt) return begin_context(reply.prompt);
    if (reply.form != ReplyForm::ToolResult) return add({.role = "user", .content = reply.text});
    for (const ToolMessage& result : reply.results)
      add({.role = "tool", .content = result.text, .tool_call_id = result.call_id});
  }

  void end(Outcome outcome, const Reply& reply) {
    ended_ = true;
    outcome_ = outcome;
    last_ = reply;
  }

  std::function<std::unique_ptr<Environment>()> make_;
  EndpointEpisodeOptions options_;
  std::uint64_t seed_;
  std::unique_ptr<Environment> environment_{};
  Protocol protocol_{};
  std::string prefix_{};
  std::vector<std::string> tools_{};
  std::vector<Message> messages_{};  // the present context
  std::vector<Message> transcript_{};
  std::int64_t context_tokens_ = 0;  // of the present context, as far as the server reports it
  std::string anchor_{};
  std::vector<Turn> turns_{};
  std::vector<std::string> ground_truth_{};
  std::map<std::string, std::string> info_{};
  EndpointCost cost_{};
  bool ended_ = false;
  Outcome outcome_ = Outcome::InfraFailed;
  Reply last_{};
};

/// A trajectory, while it is played and afterwards.
struct Player {
  std::shared_ptr<EndpointEpisode> episode{};
  Tree tree{};
  std::string failure{};
};

OrderedJson message_line(const Message& message) {
  OrderedJson json{{"role", message.role}, {"content", message.content}};
  for (const ToolCall& call : message.tool_calls)
    json["tool_calls"].push_back(OrderedJson{{"name", call.name}, {"arguments", call.arguments}});
  return json;
}

std::string transcript_line(const std::string& uid, const Leaf& leaf, const EndpointEpisode& episode) {
  OrderedJson line{{"uid", uid},
                   {"sibling", leaf.sibling},
                   {"outcome", std::string(name_of(leaf.outcome))},
                   {"score", leaf.score},
                   {"success", leaf.success}};
  if (leaf.answer) line["answer"] = *leaf.answer;
  line["measures"] = leaf.measures;
  line["messages"] = OrderedJson::array();
  for (const Message& message : episode.transcript()) line["messages"].push_back(message_line(message));
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

void add_cost(EndpointCost& sum, const EndpointCost& cost) {
  sum.answers += cost.answers;
  sum.tokens.prompt += cost.tokens.prompt;
  sum.tokens.completion += cost.tokens.completion;
}

class EpisodeTable {
 public:
  EpisodeTable(std::shared_ptr<ChatEndpoint> endpoint, std::span<const EndpointTask> tasks, const EndpointRun& run,
               const EndpointEvents& events)
      : endpoint_(std::move(endpoint)),
        tasks_(tasks),
        run_(run),
        events_(events),
        players_(tasks.size() * static_cast<std::size_t>(run.samples)),
        workers_(run.concurrency, run.turn_timeout) {}

  EndpointResult play() {
    const Stopwatch watch;
    EndpointResult result;
    while (ended_ < players_.size()) {
      if (!events_.go_on()) {
        result.stopped = true;
        return result;
      }
      while (next_ < players_.size() && workers_.pending() < run_.concurrency) start(next_++);
      for (const FinishedCall& call : workers_.collect(true)) on_call(static_cast<std::size_t>(call.tag), call);
    }
    collect(result);
    result.seconds = watch.seconds();
    return result;
  }

 private:
  const EndpointTask& task_of(std::size_t player) const {
    return tasks_[player / static_cast<std::size_t>(run_.samples)];
  }
  int sibling_of(std::size_t player) const { return static_cast<int>(player % static_cast<std::size_t>(run_.samples)); }
  std::string id_of(std::size_t player) const { return task_of(player).uid + "." + std::to_string(sibling_of(player)); }

  void start(std::size_t player) {
    const EndpointTask& task = task_of(player);
    const std::uint64_t seed = derive_seed(run_.seed, task.uid, static_cast<std::uint64_t>(sibling_of(player)));
    players_[player].episode = std::make_shared<EndpointEpisode>(task.make, run_.episode, seed);
    advance(player);
  }

  void advance(std::size_t player) {
    workers_.submit(static_cast<std::int64_t>(player),
                    [episode = players_[player].episode, endpoint = endpoint_] { episode->advance(*endpoint); });
  }

  void on_call(std::size_t number, const FinishedCall& call) {
    Player& player = players_[number];
    const bool returned = call.status == FinishedCall::Status::Returned;
    if (returned && !player.episode->ended()) return advance(number);
    if (!returned) player.failure = call.message;
    // What a call that hangs still writes must not be read.
    const bool readable = returned || call.status == FinishedCall::Status::Threw;
    if (!readable) player.episode = std::make_shared<EndpointEpisode>(nullptr, run_.episode, 0);
    player.tree = player.episode->tree(id_of(number), sibling_of(number));
    ++ended_;
    if (events_.on_progress) events_.on_progress(static_cast<std::int64_t>(ended_));
  }

  void collect(EndpointResult& result) const {
    for (std::size_t i = 0; i < players_.size(); ++i) {
      const Player& player = players_[i];
      const EndpointTask& task = task_of(i);
      if (sibling_of(i) == 0)
        result.groups.push_back({.uid = task.uid, .task_index = task.task_index, .seed = run_.seed});
      Group& group = result.groups.back();
      if (group.info.empty()) group.info = player.episode->info();
      if (group.ground_truth.empty()) group.ground_truth = player.episode->ground_truth();
      add_cost(result.cost, player.episode->cost());
      if (player.tree.leaves.front().valid()) add_cost(result.valid_cost, player.episode->cost());
      result.transcripts.push_back(transcript_line(task.uid, player.tree.leaves.front(), *player.episode));
      if (!player.failure.empty()) result.failures.push_back(sentence(i, player));
      group.trees.push_back(player.tree);
    }
  }

  std::string sentence(std::size_t number, const Player& player) const {
    const EndpointTask& task = task_of(number);
    return task.uid + (task.environment.empty() ? "" : " (" + task.environment + ")") + ", trajectory " +
           std::to_string(sibling_of(number)) + ": " + player.failure;
  }

  std::shared_ptr<ChatEndpoint> endpoint_;
  std::span<const EndpointTask> tasks_;
  const EndpointRun& run_;
  const EndpointEvents& events_;
  std::vector<Player> players_;  // by task, then by sibling
  EnvironmentWorkers workers_;
  std::size_t next_ = 0;
  std::size_t ended_ = 0;
};

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

EndpointResult play_episodes(const std::shared_ptr<ChatEndpoint>& endpoint, std::span<const EndpointTask> tasks,
                             const EndpointRun& run, const EndpointEvents& events) {
  return EpisodeTable(endpoint, tasks, run, events).play();
}

}  // namespace carnot
