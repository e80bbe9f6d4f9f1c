// worlds/dataset/environment.h -- questions from a file of your own, in one turn, scored by a list of scorers; with
// tools, in as many turns as the policy calls them.
//
// Training goes through all rows, each epoch in another order; validation task i is row i of the test file, counted
// around its end. A response scores the weighted sum of `scorers` (worlds/reward/scorer.h); `python` among them is a
// Python function, which a process next to this one runs (python/carnot_reward.py), and `judge` a language model
// (judge.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/dataset/judge.h"
#include "carnot/worlds/reward/scorer.h"
#include "carnot/worlds/task_rows/rows.h"
#include "carnot/worlds/tool_use/tool_use.h"

namespace carnot {

struct DatasetOptions {
  std::string train_file{};
  std::string test_file{};  ///< empty: a share of train_file's rows is held out
  double held_out_share = 0.1;
  DatasetColumns columns{};
  AnswerPlace answer_in = AnswerPlace::Whole;
  std::string answer_tag = "answer";
  std::vector<std::string> scorers{};
  ScorerOptions scorer{};
  std::string schema_file{};
  std::vector<std::string> reward{};
  std::vector<double> reward_weights{};
  std::string python = "python3";
  double timeout = 60;
  JudgeOptions judge{};
  double success_at = 1;
  std::string assistant_prefix{};
  ToolUseOptions tool_use{};
  std::string think_tag = "think";
  int max_response_tokens = 1024;

  void fields(FieldVisitor& visit);
};

inline constexpr double kLargestScorerWeight = 1e6;

/// "maths", "0.5 * format": the weight 1 where none is given. The error names the known scorers.
struct WeightedScorer {
  std::string name{};
  double weight = 1;
};
Result<WeightedScorer> parse_weighted_scorer(const std::string& text);

std::unique_ptr<EnvironmentFactory> make_dataset();

}  // namespace carnot
