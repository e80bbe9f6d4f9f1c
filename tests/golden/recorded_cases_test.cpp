// The manual's tables name every recorded rule with its number of cases.
#include "recorded_cases.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <regex>

#include "carnot/core/base/file.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using Counts = std::map<std::string, int>;

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.push_back((*match)[1]);
  return found;
}

/// Rows of the tables headed "recorded rule": names in the first cell, as many numbers in the second.
Counts listed_in_the_manual() {
  const std::string manual = *read_file(source_path("docs/differences_to_published_code.md"));
  Counts counts;
  bool inside = false;
  for (std::string_view line : split_lines(manual)) {
    if (line.starts_with("| recorded rule |")) inside = true;
    if (!line.starts_with('|')) inside = false;
    if (!inside) continue;
    const auto cells = matches(std::string(line), "\\|([^|]*)");
    const auto rules = matches(cells[0], "`([^`]*)`"), numbers = matches(cells[1], "([0-9]+)");
    EXPECT_EQ(rules.size(), numbers.size()) << line;
    for (std::size_t i = 0; i < std::min(rules.size(), numbers.size()); ++i) counts[rules[i]] = std::stoi(numbers[i]);
  }
  return counts;
}

TEST(RecordedCases, AreAllListedInTheManual) {
  Counts recorded;
  int total = 0;
  for (const auto& entry : std::filesystem::directory_iterator(recorded_path("credit"))) {
    const std::string name = entry.path().filename();
    if (!name.ends_with(".jsonl.xz")) continue;
    for (const Json& one_case : testing::recorded_cases(name.substr(0, name.find('.')))) {
      ++recorded[one_case["rule"].get<std::string>()];
      ++total;
    }
  }
  EXPECT_EQ(total, 2152);
  EXPECT_EQ(listed_in_the_manual(), recorded);
}

}  // namespace
}  // namespace carnot
