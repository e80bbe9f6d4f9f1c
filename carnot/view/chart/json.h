// view/chart/json.h -- tables and figures as JSON. Included by sources only: it brings nlohmann/json.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "carnot/view/chart/figure.h"

namespace carnot {

/// The rows as objects: [{column: value}]. Numbers that are not finite are null.
nlohmann::ordered_json rows_json(const Table& table);

/// Throws if a figure names a table, a column or a base series that `tables` do not have, or no column to draw.
void check_figures(std::span<const Figure> figures, std::span<const Table> tables);

/// "tables": {NAME: rows} and "figures": [...], members of Figure that are not empty. REQUIRES: check_figures.
void add_tables_and_figures(nlohmann::ordered_json& json, std::span<const Table> tables,
                            std::span<const Figure> figures);

/// The text, indented by two spaces; bytes that are not UTF-8 are replaced.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace carnot
