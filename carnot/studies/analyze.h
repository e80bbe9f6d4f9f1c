// studies/analyze.h -- `carnot analyze NAME`: reads the options, runs the analysis, keeps its numbers and its page.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/config/printer.h"
#include "carnot/studies/analysis.h"

namespace carnot {

struct AnalysisRequest {
  std::string name{};
  std::vector<std::filesystem::path> paths{};
  /// `key=value`: options of the analysis; where it needs a checkpoint, other keys are laid over the run's config.yaml.
  std::vector<std::string> overrides{};
  std::filesystem::path output = "analyses";  ///< folder of NAME.json and NAME.html
};

/// The entry of this name; an error names the nearest.
Result<const AnalysisEntry*> find_analysis(std::string_view name);

/// "(arXiv:2605.00425)" after a sentence, with a blank before it; empty for an analysis of no paper.
std::string citation(const AnalysisEntry& entry);

/// The options of an analysis, for help texts.
FieldTable analysis_options(const AnalysisEntry& entry);

/// {"analysis", "paper", "inputs", "options", "findings": [...], "tables": {NAME: [{column: value}]}, "figures",
/// "notes"} and the texts of a page (view/chart/page.h). Numbers that are not finite are null.
std::string report_json(const AnalysisReport& report, const AnalysisEntry& entry, const AnalysisRequest& request,
                        const FieldTable& options);

/// Writes OUTPUT/NAME.json and OUTPUT/NAME.html. Interrupted where the control asks for it: neither is written.
Result<AnalysisReport> analyze(const AnalysisRequest& request, const RunControl& control);

}  // namespace carnot
