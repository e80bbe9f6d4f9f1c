// cli/terminal_text.h -- tables for a terminal.
#pragma once

#include <string>
#include <vector>

namespace carnot {

/// Rows of cells, columns padded to their widest cell and two blanks apart; no blanks at the ends of lines.
/// REQUIRES: no cell holds a line break.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace carnot
