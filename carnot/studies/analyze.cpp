#include "carnot/studies/analyze.h"

#include <algorithm>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/nearest_word.h"
#include "carnot/core/config/document.h"
#include "carnot/core/config/reader.h"
#include "carnot/view/chart/json.h"
#include "carnot/view/chart/page.h"

namespace carnot {
namespace {

bool reads_configuration(const AnalysisEntry& entry) {
  return entry.needs == AnalysisNeeds::Checkpoint || entry.needs == AnalysisNeeds::Checkpoints;
}

/// `key=value` settings of the analysis, and those of the run's configuration.
struct SplitOverrides {
  std::vector<std::string> own{};
  std::vector<std::string> others{};
};

SplitOverrides split(const AnalysisEntry& entry, const std::vector<std::string>& overrides) {
  const FieldTable table = analysis_options(entry);
  SplitOverrides out;
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    const bool own =
        std::any_of(table.rows().begin(), table.rows().end(), [&](const auto& row) { return row.key == key; });
    (own || !reads_configuration(entry) ? out.own : out.others).push_back(text);
  }
  return out;
}

Status read_options(Analysis& analysis, const std::vector<std::string>& overrides) {
  CARNOT_ASSIGN_OR_RETURN(const auto document,
                          Document::parse("", "command line", {.overrides = overrides, .aliases = {}}));
  ConfigReader reader(document);
  reader.read("", analysis);
  return reader.finish();
}

Status check_paths(const AnalysisEntry& entry, std::size_t count) {
  const std::string start = std::string(entry.name) + ": ";
  if (entry.needs == AnalysisNeeds::Nothing && count > 0) return Error{start + "reads nothing; expected no path"};
  if (entry.needs == AnalysisNeeds::Checkpoint && count != 1)
    return Error{start + "expected one run folder or checkpoint folder, found " + std::to_string(count) + " paths"};
  if (entry.needs == AnalysisNeeds::Checkpoints && count < 2)
    return Error{start + "expected at least two checkpoint folders, found " + std::to_string(count)};
  if (entry.needs != AnalysisNeeds::Nothing && count == 0)
    return Error{start + "expected " +
                 (entry.needs == AnalysisNeeds::Rollouts ? "run folders or rollouts files" : "run folders")};
  return Done{};
}

}  // namespace

std::string report_json(const AnalysisReport& report, const AnalysisEntry& entry, const AnalysisRequest& request,
                        const FieldTable& options) {
  OrderedJson json{
      {"title", "carnot analyze " + std::string(entry.name)}, {"analysis", entry.name}, {"paper", entry.paper}};
  json["introduction"] = std::string(entry.summary) + citation(entry);
  json["inputs"] = OrderedJson::array();
  for (const auto& path : request.paths) json["inputs"].push_back(path.string());
  json["options"] = OrderedJson::object();
  for (const FieldRow& row : options.rows()) json["options"][row.key] = row.value;
  json["findings"] = OrderedJson::array();
  for (const Finding& finding : report.findings)
    json["findings"].push_back({{"what", finding.what}, {"paper", finding.paper}, {"here", finding.ours}});
  add_tables_and_figures(json, report.tables, report.figures);
  json["notes"] = report.notes;
  return json_text(json);
}

Result<const AnalysisEntry*> find_analysis(std::string_view name) {
  std::vector<std::string> known;
  for (const AnalysisEntry& entry : analyses()) {
    if (entry.name == name) return &entry;
    known.emplace_back(entry.name);
  }
  return Error{unknown_word("analysis", name, known)};
}

std::string citation(const AnalysisEntry& entry) {
  return entry.paper.empty() ? "" : " (arXiv:" + std::string(entry.paper) + ")";
}

FieldTable analysis_options(const AnalysisEntry& entry) {
  FieldTable table;
  const auto analysis = entry.make();
  table.add("", *analysis);
  return table;
}

Result<AnalysisReport> analyze(const AnalysisRequest& request, const RunControl& control) {
  CARNOT_ASSIGN_OR_RETURN(const AnalysisEntry* entry, find_analysis(request.name));
  CARNOT_RETURN_IF_ERROR(check_paths(*entry, request.paths.size()));
  const SplitOverrides overrides = split(*entry, request.overrides);
  const auto analysis = entry->make();
  CARNOT_RETURN_IF_ERROR(read_options(*analysis, overrides.own));
  CARNOT_ASSIGN_OR_RETURN(
      auto report,
      analysis->run(
          {.paths = request.paths, .overrides = overrides.others, .control = control, .output = request.output}));
  CARNOT_RETURN_IF_ERROR(make_folder(request.output));
  FieldTable options;
  options.add("", *analysis);
  const std::string json = report_json(report, *entry, request, options);
  const std::string file = (request.output / request.name).string();
  CARNOT_RETURN_IF_ERROR(write_file_atomically(file + ".json", json));
  CARNOT_RETURN_IF_ERROR(write_file_atomically(file + ".html", page_html(json)));
  return report;
}

}  // namespace carnot
