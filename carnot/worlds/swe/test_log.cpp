#include "carnot/worlds/swe/test_log.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::string_view kSummary = "short test summary info";
constexpr std::array<std::pair<std::string_view, TestStatus>, 4> kWords = {{{"PASSED ", TestStatus::Passed},
                                                                            {"FAILED ", TestStatus::Failed},
                                                                            {"ERROR ", TestStatus::Error},
                                                                            {"XFAIL ", TestStatus::ExpectedFailure}}};

/// Escape sequences that set colours: ESC [ digits and semicolons m.
std::string without_colours(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line.substr(at, 2) == "\x1b[") {
      const std::size_t end = line.find_first_not_of("0123456789;", at + 2);
      if (end != std::string_view::npos && line[end] == 'm') {
        at = end;
        continue;
      }
    }
    if (line[at] != '\r') text += line[at];
  }
  return text;
}

std::string_view without_reason(std::string_view name) { return trim(name.substr(0, name.find(" - "))); }

std::string_view first_word(std::string_view name) { return name.substr(0, name.find(' ')); }

int badness(TestStatus status) {
  if (status == TestStatus::Passed) return 0;
  return status == TestStatus::ExpectedFailure ? 1 : 2;
}

void note_status(TestStatuses& statuses, std::string_view name, TestStatus status) {
  const auto [entry, is_new] = statuses.try_emplace(std::string(name), status);
  if (!is_new && badness(status) > badness(entry->second)) entry->second = status;
}

TestStatuses by_first_word(const TestStatuses& statuses) {
  TestStatuses shorter;
  for (const auto& [name, status] : statuses) note_status(shorter, first_word(name), status);
  return shorter;
}

std::size_t count_passed(const TestStatuses& statuses, const std::vector<std::string>& passing, bool no_others) {
  const TestStatuses& compared = no_others ? statuses : by_first_word(statuses);
  return static_cast<std::size_t>(std::count_if(passing.begin(), passing.end(), [&](const std::string& name) {
    const std::string_view key = no_others ? without_reason(name) : first_word(name);
    const auto found = compared.find(std::string(key));
    if (found == compared.end()) return false;
    return found->second == TestStatus::Passed || (!no_others && found->second == TestStatus::ExpectedFailure);
  }));
}

}  // namespace

TestStatuses parse_pytest_log(std::string_view log) {
  const std::size_t summary = log.rfind(kSummary);
  if (summary == std::string_view::npos) return {};
  TestStatuses statuses;
  for (std::size_t at = summary; at < log.size();) {
    const std::size_t end = std::min(log.find('\n', at), log.size());
    const std::string line = without_colours(log.substr(at, end - at));
    for (const auto& [word, status] : kWords)
      if (line.starts_with(word))
        note_status(statuses, without_reason(std::string_view(line).substr(word.size())), status);
    at = end + 1;
  }
  statuses.erase("");
  return statuses;
}

bool all_passed(const TestStatuses& statuses, const std::vector<std::string>& passing, bool no_others) {
  if (no_others && statuses.size() != passing.size()) return false;
  return count_passed(statuses, passing, no_others) == passing.size();
}

double share_passed(const TestStatuses& statuses, const std::vector<std::string>& passing, bool no_others) {
  if (passing.empty()) return 0;
  return static_cast<double>(count_passed(statuses, passing, no_others)) / static_cast<double>(passing.size());
}

}  // namespace carnot
