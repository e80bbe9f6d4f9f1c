#include "carnot/env/dataset/python_reward.h"

#include <filesystem>

#include "carnot/base/json.h"
#include "carnot/process/answer_reader.h"
#include "carnot/process/python_folder.h"

namespace carnot {

Result<std::unique_ptr<PythonReward>> PythonReward::start(const PythonRewardOptions& options, const DatasetRow& row) {
  const std::string function = options.function + (options.function.ends_with(".py") ? ":compute_score" : "");
  const std::size_t colon = function.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == function.size())
    return Error{"env.reward: expected FILE:FUNCTION, found \"" + function + "\""};
  if (const std::string file = function.substr(0, colon); !std::filesystem::exists(file))
    return Error{"env.reward: " + file + ": no such file"};
  const auto folder = python_folder();
  if (!folder) return Error{"env.reward: " + folder.error().message};
  PeerOptions peer{.name = "env.reward",
                   .program = {.command = {options.python, (*folder / "carnot_reward.py").string(), function},
                               .environment = python_variables()},
                   .start_seconds = options.timeout,
                   .call_seconds = options.timeout};
  const Json hello{{"op", "hello"}, {"protocol", 1}, {"row", parse_json(row.json, "row").value()}};
  auto pool = std::make_unique<PeerPool>(std::move(peer), hello, 1);
  if (const Status started = pool->start(); !started) return started.error();
  return std::unique_ptr<PythonReward>(new PythonReward(std::move(pool)));
}

std::vector<PythonScore> PythonReward::scores(const DatasetRow& row, const std::vector<std::string>& responses) {
  const PeerAnswer answer = pool_->take()->call({{"op", "score"},
                                                 {"responses", responses},
                                                 {"prompt", row.user},
                                                 {"answers", row.answers},
                                                 {"row", parse_json(row.json, "row").value()}});
  AnswerReader reader(answer);
  std::vector<PythonScore> scores;
  reader.objects("scores", [&](AnswerReader& one) {
    PythonScore& score = scores.emplace_back();
    if (double value = 0; one.has("value")) {
      one.number("value", value);
      score.value = value;
    }
    one.text("problem", score.problem);
  });
  if (scores.size() != responses.size()) reader.refuse("scores", "one of each response");
  reader.finish();
  return scores;
}

}  // namespace carnot
