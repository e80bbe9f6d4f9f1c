#include "page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "../cli/program.h"
#include "carnot/core/base/file.h"
#include "testing/paths.h"

namespace carnot::testing {

namespace fs = std::filesystem;

std::vector<std::string> documentation_pages() {
  std::vector<std::string> pages{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"};
  for (const char* folder : {"docs", "bench/results"})
    for (const auto& entry : fs::recursive_directory_iterator(source_path(folder)))
      if (entry.path().extension() == ".md") pages.push_back(fs::relative(entry.path(), source_path("")).string());
  std::sort(pages.begin() + 3, pages.end());
  return pages;
}

std::string page_text(const std::string& page) {
  const auto text = read_file(source_path(page));
  if (!text) ADD_FAILURE() << text.error().message;
  return text ? *text : "";
}

void expect_block(const std::string& page, const std::string& name, const std::string& expected) {
  const std::string begin = "<!-- generated: " + name + " -->\n", end = "<!-- end -->\n";
  std::string text = page_text(page);
  const std::size_t first = text.find(begin);
  ASSERT_NE(first, std::string::npos) << page << ": expected the line " << begin;
  const std::size_t from = first + begin.size(), to = text.find(end, from);
  ASSERT_NE(to, std::string::npos) << page << ": " << name << ": expected the line " << end;
  const std::string found = text.substr(from, to - from);
  if (found == expected) return;
  if (std::getenv("UPDATE_DOCS") == nullptr) {
    EXPECT_EQ(found, expected) << page << ": " << name << ": UPDATE_DOCS=1 build/docs_test writes it";
    return;
  }
  text.replace(from, to - from, expected);
  const Status written = write_file_atomically(source_path(page), text);
  EXPECT_TRUE(written.ok()) << written.error().message;
}

std::string table_row(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    row += cell.empty() ? "" : " ";
    for (const char c : cell) row += c == '|' ? std::string("\\|") : std::string(1, c);
    row += " |";
  }
  return row + "\n";
}

std::string table_heading(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) line += "---|";
  return table_row(cells) + line + "\n";
}

std::string plain_cell(const std::string& text) {
  std::string cell;
  for (const char c : text) cell += c == '*' || c == '<' ? std::string("\\") + c : std::string(1, c);
  return cell;
}

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.push_back((*match)[1]);
  return found;
}

std::string program_says(const std::vector<std::string>& arguments) {
  const ProgramRun run = run_carnot(arguments);
  EXPECT_EQ(run.exit, 0) << run.err;
  return run.out;
}

}  // namespace carnot::testing
