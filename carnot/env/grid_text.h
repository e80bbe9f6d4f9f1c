// env/grid_text.h -- grids as text: coordinate lists above a map, and strings as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/fields.h"

namespace carnot {

enum class ObservationFormat : std::uint8_t {
  Grid,       ///< the map alone
  GridCoord,  ///< a list of coordinates by kind of cell, then the map
};
void observation_format_field(FieldVisitor& visit, ObservationFormat& format);

/// "(2, 1)", zero-indexed.
std::string coordinate(int row, int column);

/// The text of ObservationFormat::GridCoord.
class CoordinateText {
 public:
  CoordinateText(int rows, int columns);

  /// `name: (r, c), (r, c)`; nothing where `cells` (indices, row by row) is empty.
  void line(std::string_view name, const std::vector<int>& cells);

  std::string with_map(std::string_view grid) const;

 private:
  int columns_;
  std::string text_;
};

/// `text` as a JSON string, quotes included; other than ASCII letters stay as they are, bad UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);

}  // namespace carnot
