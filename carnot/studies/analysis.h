// studies/analysis.h -- what an analysis is: its options, what it reads, and the report that it makes.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/base/result.h"
#include "carnot/core/run/run.h"
#include "carnot/view/chart/figure.h"

namespace carnot {

/// One line of what is printed: the paper's figure next to ours.
struct Finding {
  std::string what{};
  std::string paper{};  ///< "-" where the paper gives none
  std::string ours{};
};

struct AnalysisReport {
  std::vector<Finding> findings{};
  std::vector<Table> tables{};
  std::vector<Figure> figures{};
  std::vector<std::string> notes{};  ///< what a reader must know to read the numbers

  void find(std::string what, std::string paper, std::string ours) {
    findings.push_back({std::move(what), std::move(paper), std::move(ours)});
  }
};

/// The arguments after the analysis' name on the command line.
enum class AnalysisNeeds {
  Nothing,      ///< a synthetic world
  Rollouts,     ///< rollouts/step_N.jsonl: files, run folders, or folders of run folders
  Runs,         ///< metrics.jsonl of run folders, or of folders of run folders
  Checkpoint,   ///< a run folder (its latest checkpoint) or a checkpoint folder
  Checkpoints,  ///< several of those
};
inline constexpr std::string_view kAnalysisNeeds[] = {"nothing", "rollouts", "runs", "a checkpoint", "checkpoints"};
inline std::string_view name_of(AnalysisNeeds needs) { return kAnalysisNeeds[static_cast<std::size_t>(needs)]; }

struct AnalysisInput {
  std::vector<std::filesystem::path> paths{};
  /// `key=value` over the configuration of the checkpoint's run. Empty for other analyses.
  std::vector<std::string> overrides{};
  const RunControl& control;
  std::filesystem::path output{};  ///< folder of what the analysis keeps to go on after it was stopped
};

/// The options of one analysis, and the analysis.
class Analysis {
 public:
  virtual ~Analysis() = default;
  virtual void fields(FieldVisitor& visit) = 0;

  /// Runs once. Fails if the input does not exist or lacks something, saying what would have written it.
  virtual Result<AnalysisReport> run(const AnalysisInput& input) = 0;
};

struct AnalysisEntry {
  std::string_view name;
  std::string_view paper;  ///< arXiv number; empty: no paper's
  AnalysisNeeds needs;
  std::string_view summary;
  std::unique_ptr<Analysis> (*make)();
};

/// Every analysis there is. Adding one: one file here, its line in entries.h and its row in analyses.cpp.
const std::vector<AnalysisEntry>& analyses();

}  // namespace carnot
