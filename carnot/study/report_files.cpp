#include "carnot/study/report_files.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "carnot/chart/page.h"
#include "carnot/chart/scale.h"

namespace carnot {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double value = std::get<double>(cell);
  return std::isfinite(value) ? Json(value) : Json();
}

std::string text_of(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text != nullptr ? *text : number_text(std::get<double>(cell));
}

Json rows_of(const ResultTable& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json one = Json::object();
    for (std::size_t c = 0; c < table.columns.size(); ++c) one[table.columns[c]] = json_of(row[c]);
    rows.push_back(std::move(one));
  }
  return rows;
}

/// Long tables are for the JSON file; the page shows their beginning.
constexpr std::size_t kRowsShown = 60;

Table shown_table(const ResultTable& table) {
  Table out{.columns = table.columns};
  for (const auto& row : table.rows) {
    if (out.rows.size() == kRowsShown) break;
    std::vector<std::string> cells;
    for (const Cell& cell : row) cells.push_back(text_of(cell));
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace

std::string report_json(const AnalysisReport& report, const ReportContext& context) {
  Json json{{"analysis", context.entry.name}, {"paper", context.entry.paper}, {"inputs", Json::array()}};
  for (const auto& path : context.paths) json["inputs"].push_back(path.string());
  json["options"] = Json::object();
  for (const FieldRow& row : context.options.rows()) json["options"][row.key] = row.value;
  json["findings"] = Json::array();
  for (const Finding& finding : report.findings)
    json["findings"].push_back({{"what", finding.what}, {"paper", finding.paper}, {"here", finding.ours}});
  json["tables"] = Json::object();
  for (const ResultTable& table : report.tables) json["tables"][table.name] = rows_of(table);
  json["notes"] = report.notes;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string report_page(const AnalysisReport& report, const ReportContext& context) {
  Page page("carnot analyze " + std::string(context.entry.name));
  page.paragraph(std::string(context.entry.summary) + " (arXiv:" + std::string(context.entry.paper) + ")");
  std::string inputs;
  for (const auto& path : context.paths) inputs += (inputs.empty() ? "Read: " : ", ") + path.string();
  if (!inputs.empty()) page.paragraph(inputs);
  Table findings{.columns = {"", "paper", "here"}};
  for (const Finding& finding : report.findings) findings.rows.push_back({finding.what, finding.paper, finding.ours});
  page.table(findings);
  if (!report.notes.empty()) page.list(report.notes);
  for (const Figure& figure : report.figures) page.figure(figure.svg, figure.caption);
  for (const ResultTable& table : report.tables) {
    page.heading(table.name).table(shown_table(table));
    if (table.rows.size() > kRowsShown)
      page.paragraph(std::to_string(table.rows.size() - kRowsShown) + " more rows stand in the JSON file.");
  }
  if (!context.options.rows().empty()) page.heading("Options").preformatted(to_yaml(context.options));
  return page.html();
}

}  // namespace carnot
