// worlds/ragen/grid_text.h -- grids as text: coordinate lists above a map.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"

namespace carnot {

enum class ObservationFormat : std::uint8_t {
  Grid,       ///< the map alone
  GridCoord,  ///< a list of coordinates by kind of cell, then the map
};
void observation_format_field(FieldVisitor& visit, ObservationFormat& format);

/// "(2, 1)", zero-indexed.
std::string coordinate(int row, int column);

/// Parts of the text of ObservationFormat::GridCoord: its head, then lines, then kGridMapHeading and the map.
std::string coordinate_head(int rows, int columns);
/// `name: (r, c), (r, c)` and a line break; empty if `cells` (indices, row by row) is empty.
std::string coordinate_line(std::string_view name, const std::vector<int>& cells, int columns);
inline constexpr std::string_view kGridMapHeading = "Grid Map: \n";

/// One cell of a map: a UTF-8 character, kept so that it is copied by one store.
struct Glyph {
  constexpr Glyph() = default;
  explicit constexpr Glyph(std::string_view character) : length(character.size()) {
    for (std::size_t i = 0; i < length; ++i) bytes[i] = character[i];
  }
  std::array<char, 4> bytes{};
  std::size_t length = 0;
};

inline constexpr std::size_t kMaxGridCells = 1024;

/// Appends the map whose cell i shows glyphs[cells[i]], '\n' between rows. REQUIRES: at most kMaxGridCells cells.
void append_grid(std::string& text, std::span<const std::uint8_t> cells, int columns, std::span<const Glyph> glyphs);

}  // namespace carnot
