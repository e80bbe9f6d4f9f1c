#include "carnot/serving/imported/rollout_format.h"

#include <algorithm>
#include <cmath>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/rows/row_file.h"

namespace carnot {
namespace {

bool has(const OrderedJson& record, const char* key) {
  const auto found = record.find(key);
  return found != record.end() && !found->is_null();
}

/// The fields of one record, and what is wrong with them.
class RecordReader {
 public:
  RecordReader(const OrderedJson& record, const std::string& where, std::vector<std::string>& problems)
      : record_(record), where_(where), problems_(problems), before_(problems.size()) {}

  void expected(const std::string& key, const std::string& what) {
    problems_.push_back(where_ + key + ": expected " + what + ", found " +
                        (has(record_, key.c_str()) ? shown(Json(record_.at(key))) : "nothing"));
  }

  /// The first of these fields that is there; a boolean counts as 0 or 1.
  double number(std::initializer_list<const char*> keys) {
    for (const char* key : keys) {
      if (!has(record_, key)) continue;
      if (const auto value = as_number(record_.at(key))) return *value;
      expected(key, "a number from -1e9 to 1e9");
      return 0;
    }
    expected(*keys.begin(), "a number");
    return 0;
  }

  std::int64_t step() {
    if (!has(record_, "step")) return 0;
    const OrderedJson& step = record_.at("step");
    if (step.is_number_integer() && step >= 0 && step <= kLargestCount) return step.get<std::int64_t>();
    expected("step", "a step");
    return 0;
  }

  std::string text(const char* key) {
    if (has(record_, key) && record_.at(key).is_string()) return record_.at(key).get<std::string>();
    expected(key, "a text");
    return "";
  }

  /// A text, or a list of them; numbers as they are written.
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> all;
    if (!has(record_, key)) return all;
    const OrderedJson& value = record_.at(key);
    const auto take = [&](const OrderedJson& one) {
      if (!one.is_null()) all.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    };
    if (value.is_array())
      for (const OrderedJson& one : value) take(one);
    else
      take(value);
    return all;
  }

  /// The first of these fields as the name of a task.
  std::string name(std::initializer_list<const char*> keys) const {
    for (const char* key : keys)
      if (has(record_, key) && !record_.at(key).is_structured())
        return record_.at(key).is_string() ? record_.at(key).get<std::string>() : record_.at(key).dump();
    return "";
  }

  template <class T>
  std::vector<T> list(const char* key) {
    std::vector<T> all;
    if (!has(record_, key)) return all;
    const OrderedJson& value = record_.at(key);
    const auto is_whole = [](const OrderedJson& one) { return one.is_number_integer() && one >= 0 && one < 1 << 30; };
    const bool good = value.is_array() && std::ranges::all_of(value, [&](const OrderedJson& one) {
                        return std::is_same_v<T, double> ? one.is_number() : is_whole(one);
                      });
    if (!good) {
      expected(key, "a list of numbers");
      return all;
    }
    for (const OrderedJson& one : value) all.push_back(one.get<T>());
    return all;
  }

  /// Log-probabilities as OpenAI's answers have them ({"content": [{"logprob": -0.1}, ...]}), or as numbers.
  std::vector<double> log_probs(const std::string& key, const OrderedJson& value) {
    const OrderedJson& list = value.is_object() && has(value, "content") ? value.at("content") : value;
    std::vector<double> all;
    if (list.is_array())
      for (const OrderedJson& one : list) {
        const OrderedJson& number = one.is_object() && has(one, "logprob") ? one.at("logprob") : one;
        if (number.is_number() && number.get<double>() <= 0) all.push_back(number.get<double>());
      }
    if (list.is_array() && all.size() == list.size()) return all;
    problems_.push_back(where_ + key + ": expected a list of log-probabilities, of at most 0");
    return {};
  }

  std::optional<Conversation> conversation(const OrderedJson& row) { return read_conversation(row, where_, problems_); }

  /// Numbers among the fields that are not `known`, as measures.
  std::map<std::string, double> measures(std::initializer_list<std::string_view> known) const {
    std::map<std::string, double> all;
    for (const auto& [key, value] : record_.items())
      if (std::ranges::find(known, key) == known.end())
        if (const auto number = as_number(value)) all[key] = *number;
    return all;
  }

  std::optional<ImportedRollout> result(ImportedRollout rollout) const {
    return problems_.size() == before_ ? std::optional(std::move(rollout)) : std::nullopt;
  }

  static std::optional<double> as_number(const OrderedJson& value) {
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    if (!value.is_number()) return std::nullopt;
    const double number = value.get<double>();
    return std::fabs(number) <= kLargestReward ? std::optional(number) : std::nullopt;
  }

 private:
  const OrderedJson& record_;
  const std::string& where_;
  std::vector<std::string>& problems_;
  std::size_t before_;
};

// --- tokens as trainers hold them

bool is_tokens(const OrderedJson& record) { return has(record, "prompt_ids") && has(record, "completion_ids"); }

std::optional<ImportedRollout> read_tokens(const OrderedJson& record, const std::string& where,
                                           std::vector<std::string>& problems) {
  RecordReader reader(record, where, problems);
  ImportedRollout rollout{.task = reader.name({"task_id", "example_id", "uid", "id"}), .step = reader.step()};
  rollout.prompt_ids = reader.list<TokenId>("prompt_ids");
  rollout.response_ids = reader.list<TokenId>("completion_ids");
  if (rollout.prompt_ids.empty()) reader.expected("prompt_ids", "tokens");
  for (const double bit : reader.list<double>("completion_mask")) rollout.sampled.push_back(bit != 0);
  if (!rollout.sampled.empty() && rollout.sampled.size() != rollout.response_ids.size())
    reader.expected("completion_mask", "an entry for each of completion_ids");
  const auto log_probs = reader.list<double>("completion_logprobs");
  if (!log_probs.empty() && log_probs.size() != rollout.response_ids.size())
    reader.expected("completion_logprobs", "an entry for each of completion_ids");
  for (std::size_t t = 0; t < std::min(log_probs.size(), rollout.response_ids.size()); ++t) {
    const auto sampled = [&](std::size_t at) { return at >= rollout.sampled.size() || rollout.sampled[at]; };
    if (!sampled(t)) continue;
    if (t == 0 || !sampled(t - 1)) rollout.log_probs.emplace_back();
    rollout.log_probs.back().push_back(log_probs[t]);
  }
  rollout.score = reader.number({"reward", "score"});
  rollout.truths = reader.texts("answer");
  rollout.measures = reader.measures({"step", "reward", "score", "task_id", "example_id", "uid", "id", "advantage"});
  return reader.result(std::move(rollout));
}

// --- verl: trainer.rollout_data_dir

bool is_verl(const OrderedJson& record) {
  return has(record, "input") && has(record, "output") && has(record, "score");
}

std::optional<ImportedRollout> read_verl(const OrderedJson& record, const std::string& where,
                                         std::vector<std::string>& problems) {
  RecordReader reader(record, where, problems);
  ImportedRollout rollout{.task = reader.name({"uid", "request_id"}), .step = reader.step()};
  rollout.prompt = reader.text("input");
  rollout.response = reader.text("output");
  rollout.score = reader.number({"score"});
  rollout.truths = reader.texts("gts");
  rollout.measures = reader.measures({"step", "score", "uid", "request_id"});
  return reader.result(std::move(rollout));
}

// --- TRL: log_completions

bool is_trl(const OrderedJson& record) {
  return has(record, "prompt") && has(record, "completion") && has(record, "step") && has(record, "advantage");
}

std::optional<ImportedRollout> read_trl(const OrderedJson& record, const std::string& where,
                                        std::vector<std::string>& problems) {
  RecordReader reader(record, where, problems);
  ImportedRollout rollout{.step = reader.step()};
  if (record.at("completion").is_string()) {
    rollout.prompt = reader.text("prompt");
    rollout.response = reader.text("completion");
  } else {
    rollout.conversation = reader.conversation(record);
  }
  rollout.measures = reader.measures({"step", "advantage"});
  // A column for each function, without its weight.
  for (const auto& [name, value] : rollout.measures) rollout.score += value;
  if (rollout.measures.empty()) reader.expected("reward", "a column for each reward function");
  return reader.result(std::move(rollout));
}

// --- verifiers, and environments of prime-rl: results.jsonl

bool is_verifiers(const OrderedJson& record) {
  return has(record, "prompt") && has(record, "completion") && has(record, "reward") && !has(record, "step");
}

std::optional<ImportedRollout> read_verifiers(const OrderedJson& record, const std::string& where,
                                              std::vector<std::string>& problems) {
  RecordReader reader(record, where, problems);
  ImportedRollout rollout{.task = reader.name({"example_id", "id"})};
  if (has(record, "error")) rollout.outcome = Outcome::InfraFailed;
  if (!has(record, "error") || !record.at("completion").empty()) rollout.conversation = reader.conversation(record);
  rollout.score = reader.number({"reward"});
  rollout.truths = reader.texts("answer");
  rollout.measures = reader.measures({"example_id", "id", "reward", "answer"});
  if (has(record, "task")) rollout.info["task"] = reader.name({"task"});
  return reader.result(std::move(rollout));
}

// --- Inspect: a sample of a log

bool is_inspect(const OrderedJson& record) {
  return has(record, "messages") && has(record, "epoch") && has(record, "target");
}

/// A score's value: C, P, I, N and the words for them, or a number.
std::optional<double> inspect_value(const OrderedJson& value) {
  if (!value.is_string()) return RecordReader::as_number(value);
  const std::string word = lower_case(value.get<std::string>());
  if (word == "c" || word == "correct" || word == "true" || word == "yes") return 1;
  if (word == "p" || word == "partial") return 0.5;
  return 0;
}

Outcome inspect_outcome(const OrderedJson& record) {
  if (has(record, "error")) return Outcome::InfraFailed;
  if (!has(record, "limit")) return Outcome::Finished;
  const OrderedJson& limit = record.at("limit");
  const std::string kind = limit.is_object() && has(limit, "type") ? limit.at("type").dump() : "";
  return kind == "\"token\"" || kind == "\"context\"" ? Outcome::OutOfTokens : Outcome::OutOfTurns;
}

/// Its calls as OpenAI has them.
OrderedJson openai_message(const OrderedJson& message) {
  OrderedJson out = message;
  if (has(out, "tool_calls"))
    for (OrderedJson& call : out["tool_calls"])
      if (call.is_object() && has(call, "function") && call["function"].is_string()) {
        call["function"] = {{"name", call["function"]}, {"arguments", call.value("arguments", OrderedJson::object())}};
        call["type"] = "function";
      }
  return out;
}

std::optional<ImportedRollout> read_inspect(const OrderedJson& record, const std::string& where,
                                            std::vector<std::string>& problems) {
  RecordReader reader(record, where, problems);
  ImportedRollout rollout{.task = reader.name({"id"}), .truths = reader.texts("target")};
  OrderedJson row;
  for (const OrderedJson& message : record.at("messages")) row["messages"].push_back(openai_message(message));
  rollout.outcome = inspect_outcome(record);
  const auto answers = [](const OrderedJson& message) {
    return message.is_object() && has(message, "role") && message.at("role") == "assistant";
  };
  if (rollout.outcome != Outcome::InfraFailed || std::ranges::any_of(record.at("messages"), answers))
    rollout.conversation = reader.conversation(row);
  bool first = true;
  if (has(record, "scores") && record.at("scores").is_object())
    for (const auto& [scorer, score] : record.at("scores").items()) {
      const auto value = score.is_object() && has(score, "value") ? inspect_value(score.at("value")) : std::nullopt;
      if (!value) continue;
      if (first) rollout.score = *value;
      first = false;
      rollout.measures[scorer] = *value;
    }
  if (first && rollout.outcome != Outcome::InfraFailed)
    reader.expected("scores", "a score that is a number or a grade");
  return reader.result(std::move(rollout));
}

// --- conversations with a reward

bool is_messages(const OrderedJson& record) { return has(record, "messages") || has(record, "completion"); }

std::optional<ImportedRollout> read_messages(const OrderedJson& record, const std::string& where,
                                             std::vector<std::string>& problems) {
  RecordReader reader(record, where, problems);
  ImportedRollout rollout{.task = reader.name({"task_id", "uid", "group", "id"}), .step = reader.step()};
  rollout.conversation = reader.conversation(record);
  rollout.score = reader.number({"reward", "score"});
  rollout.truths = reader.texts(has(record, "answer") ? "answer" : "ground_truth");
  rollout.measures =
      reader.measures({"step", "reward", "score", "task_id", "uid", "group", "id", "answer", "ground_truth"});
  if (has(record, "logprobs")) rollout.log_probs.push_back(reader.log_probs("logprobs", record.at("logprobs")));
  for (const char* side : {"messages", "completion"})
    if (has(record, side) && record.at(side).is_array())
      for (const OrderedJson& message : record.at(side))
        if (message.is_object() && has(message, "logprobs"))
          rollout.log_probs.push_back(reader.log_probs(std::string(side) + ": logprobs", message.at("logprobs")));
  return reader.result(std::move(rollout));
}

constexpr RolloutFormat kFormats[] = {
    {"tokens", "prompt_ids and completion_ids, as trainers hold them", is_tokens, read_tokens},
    {"verl", "verl's trainer.rollout_data_dir", is_verl, read_verl},
    {"trl", "TRL's log_completions", is_trl, read_trl, /*sums_measures=*/true},
    {"verifiers", "results.jsonl of verifiers and prime-rl", is_verifiers, read_verifiers},
    {"inspect", "samples of an Inspect log in JSON", is_inspect, read_inspect},
    {"messages", "OpenAI's messages with a reward", is_messages, read_messages},
};

std::string format_names() {
  std::string names;
  for (const RolloutFormat& format : kFormats) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

/// The samples of a log, as rows; any other text as it is.
std::string rows_of_log(std::string_view text) {
  if (text.find("\"samples\"") == std::string_view::npos) return std::string(text);
  const auto log = parse_json_object<OrderedJson>(text, "");
  if (!log || !has(*log, "samples") || !log->at("samples").is_array()) return std::string(text);
  return log->at("samples").dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace

std::span<const RolloutFormat> rollout_formats() { return kFormats; }

Result<ImportedRollouts> parse_rollouts(std::string_view text, const std::string& name, const std::string& format) {
  ImportedRollouts all;
  if (!format.empty()) {
    const auto found = std::ranges::find(kFormats, format, &RolloutFormat::name);
    if (found == std::end(kFormats))
      return Error{"--format: expected one of " + format_names() + ", found \"" + format + "\""};
    all.format = found;
  }
  const Status read = read_rows(
      rows_of_log(text), name,
      [&](const OrderedJson& record, const std::string& where, std::vector<std::string>& problems) {
        if (all.format == nullptr) {
          const auto found = std::ranges::find_if(kFormats, [&](const RolloutFormat& one) { return one.is(record); });
          if (found == std::end(kFormats)) {
            if (problems.empty())
              problems.push_back(where + "its fields are those of no format that is known; expected one of " +
                                 format_names());
            return;
          }
          all.format = found;
        }
        if (!all.format->is(record)) {
          problems.push_back(where + "expected a record of the format " + std::string(all.format->name));
          return;
        }
        auto rollout = all.format->read(record, where, problems);
        if (!rollout) return;
        all.rollouts.push_back(std::move(*rollout));
        all.lines.push_back(where);
      });
  if (!read) return read.error();
  return all;
}

}  // namespace carnot
