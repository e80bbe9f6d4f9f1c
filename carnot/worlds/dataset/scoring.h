// worlds/dataset/scoring.h -- scores responses to rows as a recipe's `env` section says: scorers by name, Python
// functions, a judge.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/dataset/environment.h"
#include "carnot/worlds/dataset/judge.h"
#include "carnot/worlds/dataset/python_reward.h"

namespace carnot {

class Scoring {
 public:
  /// The error names its key. Python functions are not started yet.
  static Result<std::unique_ptr<Scoring>> open(const DatasetOptions& options);

  /// Whether a scorer compares with a right answer, which every row then has to have.
  bool needs_answer() const { return needs_answer_; }

  /// Starts the Python functions, if the scorers list them. `row`: the first of the data set.
  Status start_python(const DatasetRow& row);

  /// The last reply to a response: its reward, measures, answer and success. With Python functions it is `unscored`.
  Reply grade(const DatasetRow& row, const PolicyResponse& response) const;

  /// Completes the unscored replies of a group's responses to `row`.
  void score_group(const DatasetRow& row, std::span<Reply> last_replies) const;

 private:
  explicit Scoring(const DatasetOptions& options) : options_(options) {}

  Status make_scorers();
  Status open_judge();
  bool lists(std::string_view name) const;
  void add_up(Reply& reply) const;

  DatasetOptions options_;
  bool needs_answer_ = false;
  std::vector<WeightedScorer> weights_{};
  std::vector<std::unique_ptr<Scorer>> scorers_{};  ///< as `weights_`; null: the Python functions, or the judge
  std::unique_ptr<PythonReward> python_{};
  std::unique_ptr<Judge> judge_{};
};

}  // namespace carnot
