#include "carnot/view/inspect_log.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/statistics.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {
namespace {

/// "2026-11-22T10:00:00+00:00"
std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  std::string text(32, '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S+00:00", &parts));
  return text;
}

/// For names of files and ids: letters and digits, other signs as hyphens.
std::string plain(std::string text) {
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '-';
  return text;
}

std::string log_id(const InspectTask& task) { return plain(task.run) + "-step-" + std::to_string(task.step); }

OrderedJson finite(double value) { return std::isfinite(value) ? OrderedJson(value) : OrderedJson(); }

/// The role that the text before a message names last; a chat format without words for them has users alone.
std::string role_after(std::string_view scaffolding) {
  std::string_view role = "user";
  std::size_t last = 0;
  for (const std::string_view name : {"system", "user", "assistant", "tool"})
    if (const std::size_t at = scaffolding.rfind(name); at != std::string_view::npos && at + 1 > last) {
      last = at + 1;
      role = name;
    }
  return std::string(role);
}

/// Puts the messages of one trajectory together, turn by turn.
class Conversation {
 public:
  Conversation(const Trajectory& trajectory, const Tokenizer& tokenizer)
      : trajectory_(trajectory), tokenizer_(tokenizer) {
    for (int k = 0; k < trajectory.num_turns(); ++k) add_turn(k);
    end_message();
  }

  const OrderedJson& messages() const { return messages_; }
  std::string first_request() const { return first_request_; }
  std::string last_response() const { return last_response_; }

 private:
  std::string text(const Turn& turn, int begin, int end) const {
    const std::span<const TokenId> tokens(turn.tokens);
    return with_replacement_characters(
        tokenizer_.decode(tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))));
  }

  void add_turn(int k) {
    const Turn& turn = trajectory_.turn(k);
    if (turn.context == Context::Fresh && k > 0) end_message();
    for (const Span& span : turn.spans) {
      if (span.begin < turn.sampled_begin)
        add_said(turn, span.kind, span.begin, std::min(span.end, turn.sampled_begin));
    }
    add_response(k);
    for (const Span& span : turn.spans)
      if (span.end > turn.sampled_end) add_said(turn, span.kind, std::max(span.begin, turn.sampled_end), span.end);
  }

  /// What others said, or the scaffolding around it.
  void add_said(const Turn& turn, SpanKind kind, int begin, int end) {
    const std::string said = text(turn, begin, end);
    if (kind == SpanKind::Template) {
      end_message();
      scaffolding_ += said;
      return;
    }
    if (role_.empty()) {
      role_ = kind == SpanKind::Observation && !call_.empty() ? "tool" : role_after(scaffolding_);
      scaffolding_.clear();
    }
    content_ += said;
  }

  void add_response(int k) {
    const Turn& turn = trajectory_.turn(k);
    // What the format puts into the assistant's mouth belongs to the response.
    const std::string prefix = role_ == "assistant" ? std::exchange(content_, {}) : std::string();
    if (role_ == "assistant") role_.clear();
    end_message();
    scaffolding_.clear();
    call_.clear();
    if (turn.num_sampled() == 0 && prefix.empty()) return;
    int end = turn.sampled_end;
    while (end > turn.sampled_begin && tokenizer_.is_control(turn.tokens[static_cast<std::size_t>(end - 1)])) --end;
    last_response_ = prefix + text(turn, turn.sampled_begin, end);
    OrderedJson message{{"role", "assistant"}, {"content", last_response_}, {"source", "generate"}};
    if (!turn.tool.empty()) {
      call_ = "call-" + std::to_string(k);
      tool_ = turn.tool;
      const OrderedJson arguments{{"text", action_of(turn)}};
      message["tool_calls"] = OrderedJson::array();
      message["tool_calls"].push_back(
          {{"id", call_}, {"function", turn.tool}, {"arguments", arguments}, {"type", "function"}});
    }
    OrderedJson facts{{"turn", k}, {"reward", turn.reward}};
    if (turn.penalty != 0) facts["penalty"] = turn.penalty;
    if (!turn.valid_action) facts["valid_action"] = false;
    if (turn.info_gain) facts["info_gain"] = finite(*turn.info_gain);
    message["metadata"] = std::move(facts);
    messages_.push_back(std::move(message));
  }

  std::string action_of(const Turn& turn) const {
    std::string action;
    for (const Span& span : turn.spans)
      if (span.kind == SpanKind::Action) action += text(turn, span.begin, span.end);
    return action;
  }

  void end_message() {
    if (role_.empty()) return;
    OrderedJson message{{"role", role_}, {"content", content_}};
    if (role_ == "tool" && !call_.empty()) {
      message["tool_call_id"] = call_;
      message["function"] = tool_;
    }
    if (role_ == "user" && first_request_.empty()) first_request_ = content_;
    messages_.push_back(std::move(message));
    role_.clear();
    content_.clear();
  }

  const Trajectory& trajectory_;
  const Tokenizer& tokenizer_;
  OrderedJson messages_ = OrderedJson::array();
  std::string scaffolding_{}, role_{}, content_{};  // of the message that is being read
  std::string call_{}, tool_{};                     // of the last response
  std::string first_request_{}, last_response_{};
};

/// Mean of the column over sampled tokens; empty if it was not measured.
std::optional<double> mean_of(const std::vector<double>& values, const std::vector<bool>& sampled) {
  double sum = 0;
  std::int64_t count = 0;
  for (std::size_t t = 0; t < values.size(); ++t)
    if (sampled[t] && std::isfinite(values[t])) sum += values[t], ++count;
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

/// Log-probabilities of the last response, token by token.
OrderedJson log_probs(const Trajectory& trajectory, const Tokenizer& tokenizer) {
  OrderedJson content = OrderedJson::array();
  for (int k = trajectory.num_turns() - 1; k >= 0 && content.empty(); --k) {
    const Turn& turn = trajectory.turn(k);
    const Columns& columns = trajectory.tree->columns;
    const int number = trajectory.turns[static_cast<std::size_t>(k)];
    if (turn.num_sampled() == 0 || number >= columns.num_turns(Column::LogProbRollout)) continue;
    const std::vector<double>& values = columns.turn(Column::LogProbRollout, number);
    for (int t = turn.sampled_begin; t < turn.sampled_end; ++t) {
      const auto at = static_cast<std::size_t>(t);
      if (at >= values.size() || !std::isfinite(values[at])) return OrderedJson();
      content.push_back(
          {{"token", with_replacement_characters(tokenizer.bytes_of(turn.tokens[at]))}, {"logprob", values[at]}});
    }
  }
  return content.empty() ? OrderedJson() : OrderedJson{{"content", std::move(content)}};
}

struct Usage {
  std::int64_t input = 0, output = 0;

  OrderedJson json() const {
    return {{"input_tokens", input}, {"output_tokens", output}, {"total_tokens", input + output}};
  }
};

OrderedJson score_json(double value, const Leaf& leaf) {
  OrderedJson json{{"value", finite(value)}, {"explanation", name_of(leaf.outcome)}};
  if (leaf.answer) json["answer"] = *leaf.answer;
  return json;
}

/// By name: the score, success as 0 or 1, and what the environment reports besides.
std::map<std::string, double> scores_of(const Leaf& leaf) {
  std::map<std::string, double> scores = leaf.measures;
  scores["score"] = leaf.score;
  scores["success"] = leaf.success ? 1 : 0;
  return scores;
}

OrderedJson sample_json(const Trajectory& trajectory, const Credit* credit, int epoch, const InspectTask& task,
                        const Tokenizer& tokenizer, Usage& usage) {
  const Group& group = *trajectory.group;
  const Leaf& leaf = trajectory.leaf();
  const Conversation conversation(trajectory, tokenizer);
  OrderedJson choice{
      {"message", {{"role", "assistant"}, {"content", conversation.last_response()}, {"source", "generate"}}},
      {"stop_reason", leaf.outcome == Outcome::OutOfTokens ? "max_tokens" : "stop"}};
  if (OrderedJson tokens = log_probs(trajectory, tokenizer); !tokens.is_null()) choice["logprobs"] = std::move(tokens);
  usage = {.input = trajectory.num_tokens() - trajectory.num_sampled(), .output = trajectory.num_sampled()};
  const OrderedJson used = OrderedJson{{task.model, usage.json()}};
  OrderedJson sample{
      {"id", group.uid},
      {"epoch", epoch},
      {"input", conversation.first_request()},
      {"target", group.ground_truth},
      {"messages", conversation.messages()},
      {"output",
       {{"model", task.model}, {"choices", OrderedJson::array({std::move(choice)})}, {"usage", usage.json()}}},
      {"model_usage", used}};
  OrderedJson metadata{{"step", task.step}, {"trajectory", leaf.trajectory_id}, {"outcome", name_of(leaf.outcome)}};
  for (const auto& [name, value] : group.info) metadata[name] = value;
  if (leaf.dropped) metadata["dropped"] = true;
  if (leaf.parent >= 0) {
    metadata["parent"] = trajectory.tree->leaves[static_cast<std::size_t>(leaf.parent)].trajectory_id;
    metadata["branch_turn"] = leaf.branch_turn;
  }
  const std::vector<bool> sampled = trajectory.sampled();
  if (trajectory.tree->columns.has(Column::EntropyRollout))
    if (const auto entropy = mean_of(trajectory.column(Column::EntropyRollout), sampled))
      metadata["entropy"] = *entropy;
  if (credit != nullptr && leaf.is_included())
    if (const auto advantage = mean_of(credit->advantage, sampled)) metadata["advantage"] = *advantage;
  sample["metadata"] = std::move(metadata);
  if (leaf.valid()) {
    for (const auto& [name, value] : scores_of(leaf)) sample["scores"][name] = score_json(value, leaf);
  } else {
    const char* what = "infrastructure failure: this trajectory counts nowhere";
    sample["error"] = {{"message", what}, {"traceback", what}, {"traceback_ansi", what}};
  }
  if (leaf.outcome == Outcome::OutOfTurns) sample["limit"] = {{"type", "message"}, {"limit", trajectory.num_turns()}};
  if (leaf.outcome == Outcome::OutOfTokens) sample["limit"] = {{"type", "token"}, {"limit", trajectory.num_tokens()}};
  return sample;
}

/// Mean and standard error of each score over the samples that have it.
OrderedJson results_json(const std::map<std::string, std::vector<double>>& scores, std::size_t samples,
                         std::size_t completed) {
  OrderedJson list = OrderedJson::array();
  for (const auto& [name, values] : scores) {
    const double error = std_sample(values) / std::sqrt(static_cast<double>(values.size()));
    list.push_back({{"name", name},
                    {"scorer", name},
                    {"scored_samples", values.size()},
                    {"unscored_samples", samples - values.size()},
                    {"metrics",
                     {{"mean", {{"name", "mean"}, {"value", finite(mean(values))}}},
                      {"stderr", {{"name", "stderr"}, {"value", finite(error)}}}}}});
  }
  return {{"total_samples", samples}, {"completed_samples", completed}, {"scores", std::move(list)}};
}

}  // namespace

std::string inspect_file_name(const InspectTask& task) {
  std::string time = time_text(task.made_at);
  std::ranges::replace(time, ':', '-');
  return time + "_" + plain(task.task) + "_" + log_id(task) + ".json";
}

std::string inspect_log(const InspectTask& task, std::span<const Group> groups, const CreditTable& credit,
                        const Tokenizer& tokenizer) {
  const std::vector<Trajectory> all = trajectories(groups);
  CARNOT_CHECK(credit.empty() || credit.size() == all.size(), "credit is numbered as the trajectories");
  OrderedJson samples = OrderedJson::array();
  std::map<std::string, std::vector<double>> scores;
  std::map<int, int> epochs;  // members of each group so far
  std::size_t completed = 0;
  Usage total;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Usage usage;
    samples.push_back(sample_json(all[i], credit.empty() ? nullptr : &credit[i], ++epochs[all[i].group_index], task,
                                  tokenizer, usage));
    total.input += usage.input;
    total.output += usage.output;
    if (!all[i].leaf().valid()) continue;
    ++completed;
    for (const auto& [name, value] : scores_of(all[i].leaf())) scores[name].push_back(value);
  }
  int most = 1;
  for (const auto& [group, members] : epochs) most = std::max(most, members);
  OrderedJson ids = OrderedJson::array();
  for (const Group& group : groups) ids.push_back(group.uid);
  const std::string time = time_text(task.made_at);
  const std::string id = log_id(task);
  OrderedJson log{
      {"version", 2},
      {"status", "success"},
      {"eval",
       {{"eval_id", id},
        {"run_id", plain(task.run)},
        {"created", time},
        {"task", task.task},
        {"task_id", id},
        {"task_version", 0},
        {"task_args", {{"step", task.step}}},
        {"dataset", {{"name", task.task}, {"samples", groups.size()}, {"sample_ids", std::move(ids)}}},
        {"model", task.model},
        {"config", {{"epochs", most}}},
        {"metadata", {{"step", task.step}, {"settings", task.settings}}}}},
      {"plan", {{"name", "plan"}, {"steps", OrderedJson::array()}, {"config", OrderedJson::object()}}},
      {"results", results_json(scores, all.size(), completed)},
      {"stats", {{"started_at", time}, {"completed_at", time}, {"model_usage", {{task.model, total.json()}}}}},
      {"samples", std::move(samples)}};
  return log.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace carnot
