// cli/terminal_text.h -- text that is safe to show, and tables of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// `text` with control characters other than line breaks and tabs, and bytes that are not UTF-8, written as \xNN:
/// what a model said cannot move the cursor.
std::string printable(std::string_view text);

/// The same on one line: line breaks and tabs as \n and \t.
std::string printable_line(std::string_view text);

/// Rows of cells, columns padded to their widest cell and two blanks apart; no blanks at the ends of lines.
/// REQUIRES: no cell holds a line break.
std::string text_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace carnot
