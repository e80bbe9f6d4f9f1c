// study/report_files.h -- the report of an analysis as JSON, and as one self-contained page.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "carnot/config/printer.h"
#include "carnot/study/analysis.h"

namespace carnot {

/// Where a report comes from.
struct ReportContext {
  const AnalysisEntry& entry;
  std::span<const std::filesystem::path> paths;
  const FieldTable& options;
};

/// {"analysis", "paper", "inputs", "options", "findings": [...], "tables": {NAME: [{column: value}]}, "notes"}. Numbers
/// that are none are null.
std::string report_json(const AnalysisReport& report, const ReportContext& context);

/// HTML with the drawings inside.
std::string report_page(const AnalysisReport& report, const ReportContext& context);

}  // namespace carnot
