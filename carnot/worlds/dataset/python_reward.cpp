#include "carnot/worlds/dataset/python_reward.h"

#include <algorithm>
#include <filesystem>

#include "carnot/core/base/json.h"
#include "carnot/core/subprocess/python_folder.h"

namespace carnot {

namespace {

/// FILE:FUNCTION, also of what is FILE.py alone.
Result<std::string> function_of(const std::string& text) {
  std::string function = text + (text.ends_with(".py") ? ":compute_score" : "");
  const std::size_t colon = function.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == function.size())
    return Error{"env.reward: expected FILE:FUNCTION, found \"" + function + "\""};
  if (const std::string file = function.substr(0, colon); !std::filesystem::exists(file))
    return Error{"env.reward: " + file + ": no such file"};
  return function;
}

std::string name_in(const std::string& function) { return function.substr(function.rfind(':') + 1); }

}  // namespace

Result<std::unique_ptr<PythonReward>> PythonReward::start(const PythonRewardOptions& options, const DatasetRow& row) {
  const std::size_t count = options.functions.size();
  if (count == 0) return Error{"env.reward: expected FILE:FUNCTION, or a list of them"};
  if (!options.weights.empty() && options.weights.size() != count)
    return Error{"env.reward_weights: has " + std::to_string(options.weights.size()) + ", and env.reward has " +
                 std::to_string(count) + (count == 1 ? " function" : " functions") + "; expected one weight of each"};
  const auto folder = python_folder();
  if (!folder) return Error{"env.reward: " + folder.error().message};
  std::vector<std::string> command{options.python, (*folder / "carnot_reward.py").string()};
  std::vector<Part> parts;
  for (const std::string& text : options.functions) {
    CARNOT_ASSIGN_OR_RETURN(const auto function, function_of(text));
    if (std::find(command.begin() + 2, command.end(), function) != command.end())
      return Error{"env.reward: lists " + function + " twice"};
    const bool is_only = std::count_if(options.functions.begin(), options.functions.end(),
                                       [&](const auto& other) { return name_in(other) == name_in(function); }) <= 1;
    command.push_back(function);
    parts.push_back({.name = is_only ? name_in(function) : function,
                     .weight = options.weights.empty() ? 1 : options.weights[parts.size()]});
  }
  PeerOptions peer{.name = "env.reward",
                   .program = {.command = std::move(command), .environment = python_variables()},
                   .start_seconds = options.timeout,
                   .call_seconds = options.timeout};
  const Json hello{{"op", "hello"}, {"protocol", 1}, {"row", parse_json(row.json, "row").value()}};
  auto pool = std::make_unique<PeerPool>(std::move(peer), hello, 1);
  CARNOT_RETURN_IF_ERROR(pool->start());
  return std::unique_ptr<PythonReward>(new PythonReward(std::move(parts), std::move(pool)));
}

// The answer names functions by their places.
PythonScore PythonReward::read_score(AnswerReader& reader) const {
  PythonScore score;
  std::map<std::string, double> values;
  reader.numbers("values", values);
  reader.text("problem", score.problem);
  if (values.empty()) return score;
  score.value = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const auto found = values.find(std::to_string(i));
    if (found == values.end()) continue;
    *score.value += parts_[i].weight * found->second;
    if (parts_.size() > 1) score.parts[parts_[i].name] = found->second;
  }
  return score;
}

std::vector<PythonScore> PythonReward::scores(const DatasetRow& row, const std::vector<std::string>& responses) {
  const PeerAnswer answer = pool_->take()->call({{"op", "score"},
                                                 {"responses", responses},
                                                 {"prompt", row.user},
                                                 {"answers", row.answers},
                                                 {"row", parse_json(row.json, "row").value()}});
  AnswerReader reader(answer);
  std::vector<PythonScore> scores;
  reader.objects("scores", [&](AnswerReader& one) { scores.push_back(read_score(one)); });
  if (scores.size() != responses.size()) reader.refuse("scores", "one of each response");
  reader.finish();
  return scores;
}

}  // namespace carnot
