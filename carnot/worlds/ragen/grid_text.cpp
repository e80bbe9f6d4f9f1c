#include "carnot/worlds/ragen/grid_text.h"

#include <cstring>

#include "carnot/core/base/check.h"

namespace carnot {

void observation_format_field(FieldVisitor& visit, ObservationFormat& format) {
  enum_field(visit, "observation_format", format, {"grid", "grid_coord"},
             "the map alone, or below a list of coordinates");
}

std::string coordinate(int row, int column) { return "(" + std::to_string(row) + ", " + std::to_string(column) + ")"; }

std::string coordinate_head(int rows, int columns) {
  return "Coordinates: \nBoard size: " + std::to_string(rows) + " rows x " + std::to_string(columns) +
         " cols (zero-indexed).\n";
}

std::string coordinate_line(std::string_view name, const std::vector<int>& cells, int columns) {
  if (cells.empty()) return "";
  std::string text(name);
  for (std::size_t i = 0; i < cells.size(); ++i)
    text += (i > 0 ? ", " : ": ") + coordinate(cells[i] / columns, cells[i] % columns);
  return text + "\n";
}

void append_grid(std::string& text, std::span<const std::uint8_t> cells, int columns, std::span<const Glyph> glyphs) {
  CARNOT_CHECK_LE(cells.size(), kMaxGridCells);
  std::array<char, kMaxGridCells * 5 + 4> buffer;
  char* out = buffer.data();
  int column = 0;
  for (const std::uint8_t cell : cells) {
    if (column++ == columns) {
      *out++ = '\n';
      column = 1;
    }
    const Glyph& glyph = glyphs[cell];
    std::memcpy(out, glyph.bytes.data(), glyph.bytes.size());
    out += glyph.length;
  }
  text.append(buffer.data(), out);
}

}  // namespace carnot
