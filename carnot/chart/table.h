// chart/table.h -- a table of texts, as HTML and as Markdown.
#pragma once

#include <string>
#include <vector>

namespace carnot {

/// The first column holds names, the others numbers. REQUIRES: every row has a cell per column.
struct Table {
  std::vector<std::string> columns{};
  std::vector<std::vector<std::string>> rows{};
};

std::string html(const Table& table);

/// A pipe table, columns padded so that the text can be read as well.
std::string markdown(const Table& table);

}  // namespace carnot
