// worlds/task_rows/question_set.h -- questions from files, each answered in one turn: what `dataset` and its presets
// share.
//
// A preset reads rows in its own way, says how a response is graded, and leaves the rest to QuestionFactory. Training
// goes through all rows, each epoch in another order; validation task i is row i of the test file, counted around its
// end.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/core/env/epoch_order.h"
#include "carnot/worlds/task_rows/rows.h"

namespace carnot {

struct QuestionSet {
  std::vector<DatasetRow> train{}, test{};  ///< neither is empty
  Protocol protocol{};
  std::string assistant_prefix{};
  /// The last reply of an episode. Called on many threads at once; may throw what Environment::step() may.
  std::function<Reply(const DatasetRow& row, const PolicyResponse& response)> grade{};
  /// Environment::score_group(), where `grade` leaves replies unscored.
  std::function<void(const DatasetRow& row, std::span<Reply> last_replies)> score_group{};
};

class QuestionFactory : public EnvironmentFactory {
 public:
  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override;
  std::int64_t num_training_tasks() const override { return std::ssize(questions_->train); }
  std::int64_t num_validation_tasks() const override { return std::ssize(questions_->test); }
  /// Says the row's worked solution; null if it has none.
  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double progress,
                                        RandomStream random) const override;
  std::vector<std::string> tokenizer_texts() const override;

 protected:
  /// `draws` names the draws that order the epochs (env/epoch_order.h).
  void set_questions(QuestionSet questions, std::uint64_t seed, const std::string& draws);

  /// REQUIRES: set_questions() was called, index >= 0.
  const DatasetRow& row(Split split, std::int64_t index) const;

 private:
  std::shared_ptr<const QuestionSet> questions_{};
  std::unique_ptr<EpochOrder> order_{};
};

}  // namespace carnot
