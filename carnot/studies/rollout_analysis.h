// studies/rollout_analysis.h -- an analysis that reads the rollouts of runs, step by step, and then reports.
#pragma once

#include <vector>

#include "carnot/core/data/rollout_file.h"
#include "carnot/studies/analysis.h"
#include "carnot/studies/run_set.h"

namespace carnot {

/// One file of rollouts, with its included trajectories.
struct StudiedStep {
  const StudiedRun& run;
  const RolloutPath& source;
  const RolloutFile& file;
  std::vector<Trajectory> all{};  ///< numbered as file.credit
  std::vector<int> counting{};    ///< numbers of the included ones
};

/// What the rows of every step must hold. Where one does not, the analysis fails, naming file, line, signal, and what
/// would have written it.
struct RowNeeds {
  std::vector<Column> columns{};  ///< a number on every sampled token of the included trajectories
  bool info_gain = false;         ///< an information gain on some turn
  bool credit = false;            ///< advantages
};

class RolloutAnalysis : public Analysis {
 public:
  explicit RolloutAnalysis(RowNeeds needs = {}) : needs_(std::move(needs)) {}

  /// Which steps are read; then the analysis' own options.
  void fields(FieldVisitor& visit) final;
  Result<AnalysisReport> run(const AnalysisInput& input) final;

 protected:
  virtual void options(FieldVisitor&) {}
  virtual void add(const StudiedStep& step) = 0;
  virtual Result<AnalysisReport> report(const AnalysisInput& input) const = 0;

  std::vector<std::string> labels_{};  ///< of the runs, in their order; for report()

 private:
  Status visit(const StudiedRun& run, const RolloutPath& source);

  RowNeeds needs_;
  std::int64_t first_step_ = 0, last_step_ = 0, every_ = 1;
};

/// Calls `visit` with every turn that has sampled tokens, of the included trajectories: the trajectory's number in
/// `all`, the trajectory, and the turn's number from 0.
template <class Visit>
void for_each_turn(const StudiedStep& step, Visit visit) {
  for (const int i : step.counting)
    for (int k = 0; k < step.all[i].num_turns(); ++k)
      if (step.all[i].turn(k).num_sampled() > 0) visit(i, step.all[i], k);
}

/// Which of the tokens that the policy sampled; thinking is all that is no action.
enum class SampledKind { Any, Think, Action };

/// Values of the column on the sampled tokens of one kind, in reading order.
std::vector<double> sampled_values(const Trajectory& trajectory, Column column, SampledKind kind = SampledKind::Any);

}  // namespace carnot
