#include "carnot/view/chart/json.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"

namespace carnot {
namespace {

const Table& table_named(const std::string& name, std::span<const Table> tables) {
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const Table& table) { return table.name == name; });
  CARNOT_CHECK(found != tables.end(), "no table is named " + name);
  return *found;
}

constexpr std::array<const char*, 4> kDrawNames = {"lines", "points", "bars", "intervals"};

OrderedJson json_of(const Cell& cell) {
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  const double value = std::get<double>(cell);
  return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
}

OrderedJson json_of(const Axis& axis) {
  OrderedJson json{{"label", axis.label}, {"percent", axis.percent}};
  if (axis.low) json["low"] = *axis.low;
  if (axis.high) json["high"] = *axis.high;
  return json;
}

OrderedJson json_of(const Figure& figure) {
  OrderedJson json{
      {"title", figure.title}, {"table", figure.table}, {"draw", kDrawNames[static_cast<int>(figure.draw)]},
      {"x", figure.x},         {"y", figure.y},         {"series", figure.series}};
  for (const auto& [column, cells] : figure.rows)
    for (const Cell& cell : cells) json["rows"][column].push_back(json_of(cell));
  const std::pair<const char*, const std::string&> texts[] = {{"caption", figure.caption}, {"low", figure.low},
                                                              {"high", figure.high},       {"spread", figure.spread},
                                                              {"base", figure.base},       {"dots", figure.dots}};
  for (const auto& [name, text] : texts)
    if (!text.empty()) json[name] = text;
  if (figure.mark) json["mark"] = *figure.mark;
  json["x_axis"] = json_of(figure.x_axis);
  json["y_axis"] = json_of(figure.y_axis);
  return json;
}

}  // namespace

void check_figures(std::span<const Figure> figures, std::span<const Table> tables) {
  for (const Figure& figure : figures) {
    const Table& table = table_named(figure.table, tables);
    CARNOT_CHECK(!figure.y.empty(), figure.title + " draws no column");
    CARNOT_CHECK_EQ(figure.low.empty(), figure.high.empty());
    std::vector<std::string> columns = figure.y;
    columns.push_back(figure.x);
    columns.insert(columns.end(), figure.series.begin(), figure.series.end());
    for (const std::string& column : {figure.low, figure.high, figure.spread})
      if (!column.empty()) columns.push_back(column);
    for (const auto& [column, cells] : figure.rows) columns.push_back(column);
    for (const std::string& column : columns) table.index_of(column);
    if (figure.dots.empty()) continue;
    for (const std::string& column : {figure.x, figure.y[0]}) table_named(figure.dots, tables).index_of(column);
  }
}

OrderedJson rows_json(const Table& table) {
  OrderedJson rows = OrderedJson::array();
  for (const auto& row : table.rows) {
    OrderedJson one = OrderedJson::object();
    for (std::size_t c = 0; c < table.columns.size(); ++c) one[table.columns[c]] = json_of(row[c]);
    rows.push_back(std::move(one));
  }
  return rows;
}

void add_tables_and_figures(OrderedJson& json, std::span<const Table> tables, std::span<const Figure> figures) {
  check_figures(figures, tables);
  json["tables"] = OrderedJson::object();
  for (const Table& table : tables) json["tables"][table.name] = rows_json(table);
  json["figures"] = OrderedJson::array();
  for (const Figure& figure : figures) json["figures"].push_back(json_of(figure));
}

std::string json_text(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace carnot
