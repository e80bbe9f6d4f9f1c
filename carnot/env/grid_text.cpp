#include "carnot/env/grid_text.h"

#include <nlohmann/json.hpp>

namespace carnot {

void observation_format_field(FieldVisitor& visit, ObservationFormat& format) {
  enum_field(visit, "observation_format", format, {"grid", "grid_coord"},
             "the map alone, or below a list of coordinates");
}

std::string coordinate(int row, int column) {
  return "(" + std::to_string(row) + ", " + std::to_string(column) + ")";
}

CoordinateText::CoordinateText(int rows, int columns)
    : columns_(columns),
      text_("Coordinates: \nBoard size: " + std::to_string(rows) + " rows x " + std::to_string(columns) +
            " cols (zero-indexed).\n") {}

void CoordinateText::line(std::string_view name, const std::vector<int>& cells) {
  if (cells.empty()) return;
  text_ += name;
  text_ += ": ";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (i > 0) text_ += ", ";
    text_ += coordinate(cells[i] / columns_, cells[i] % columns_);
  }
  text_ += '\n';
}

std::string CoordinateText::with_map(std::string_view grid) const {
  return text_ + "Grid Map: \n" + std::string(grid);
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace carnot
