#include "carnot/worlds/swe/task.h"

#include <algorithm>
#include <charconv>

#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::string_view kSection = "=== ", kRight = "--- right\n", kWrong = "--- wrong\n";
constexpr std::size_t kLongestPath = 1024;
constexpr std::string_view kDifficulty = "difficulty: ";

struct TaskSection {
  std::string kind{};
  std::string path{};
  std::string_view text{};
  std::size_t line = 0;  ///< of its heading, from 1
};

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

class SweTaskReader {
 public:
  SweTaskReader(std::string_view text, const std::string& id) : text_(text), id_(id) { task_.id = id; }

  Result<SweTask> read() {
    split();
    for (const TaskSection& section : sections_) take(section);
    for (const TaskSection& section : sections_)
      if (section.kind == "bug") add_fault(section);
    if (trim(task_.issue).empty()) problem(1, "there is no issue");
    if (task_.repair.empty()) problem(1, "there is no bug");
    if (task_.passing.empty()) problem(1, "there are no expected tests");
    if (!problems_.empty()) return join_errors(problems_);
    task_.no_others = true;
    return std::move(task_);
  }

 private:
  void problem(std::size_t line, const std::string& what) {
    problems_.push_back(id_ + ", line " + std::to_string(line) + ": " + what);
  }

  /// Headings begin lines; what comes before the first one is the task's head.
  void split() {
    std::size_t at = 0, line = 1;
    for (const std::string_view one : split_lines(text_)) {
      const std::size_t end = std::min(at + one.size() + 1, text_.size());
      if (one.starts_with(kSection)) {
        const std::string_view heading = one.substr(kSection.size());
        const std::size_t blank = std::min(heading.find(' '), heading.size());
        const std::string_view path = heading.substr(std::min(blank + 1, heading.size()));
        sections_.push_back({.kind = std::string(heading.substr(0, blank)),
                             .path = std::string(path),
                             .text = text_.substr(end, 0),
                             .line = line});
      } else if (sections_.empty()) {
        read_head(one, line);
      } else {
        std::string_view& text = sections_.back().text;
        text = std::string_view(text.data(), text.size() + (end - at));
      }
      at = end;
      ++line;
    }
  }

  void read_head(std::string_view one, std::size_t line) {
    const std::string_view number = one.substr(std::min(one.size(), kDifficulty.size()));
    const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), task_.difficulty);
    const bool is_read = one.starts_with(kDifficulty) && wrong == std::errc{} && end == number.data() + number.size();
    if (!is_read || task_.difficulty < 1 || task_.difficulty > 5)
      problem(line, "expected 'difficulty: N' with N from 1 to 5, and then sections");
  }

  void take(const TaskSection& section) {
    const bool is_file = section.kind == "file" || section.kind == "visible" || section.kind == "hidden";
    if ((is_file || section.kind == "bug") && !is_path_beneath(section.path))
      return problem(section.line, "'" + section.path + "' is no path in the repository");
    const SweFile file{.content = std::string(section.text)};
    if (section.kind == "issue") {
      task_.issue = trim(section.text);
    } else if (section.kind == "expected") {
      for (const std::string_view name : split_lines(section.text))
        if (!trim(name).empty()) task_.passing.emplace_back(trim(name));
    } else if (is_file) {
      if (section.kind != "hidden") task_.repository[section.path] = file;
      if (section.kind == "file") return;
      task_.tests[section.path] = file;
      if (std::find(task_.test_files.begin(), task_.test_files.end(), section.path) == task_.test_files.end())
        task_.test_files.push_back(section.path);
    } else if (section.kind != "bug") {
      problem(section.line,
              "'" + section.kind + "' is no section; expected issue, file, visible, hidden, bug or expected");
    }
  }

  void add_fault(const TaskSection& section) {
    const auto file = task_.repository.find(section.path);
    if (file == task_.repository.end()) return problem(section.line, "there is no file '" + section.path + "'");
    std::string_view rest = section.text;
    if (!rest.starts_with(kRight)) return problem(section.line, "expected a line '--- right' after it");
    while (!rest.empty()) {
      rest.remove_prefix(kRight.size());
      const std::size_t middle = rest.find(kWrong);
      if (middle == std::string_view::npos) return problem(section.line, "a '--- right' without its '--- wrong'");
      const std::string_view right = rest.substr(0, middle);
      rest.remove_prefix(middle + kWrong.size());
      const std::size_t end = std::min(rest.find(kRight), rest.size());
      const std::string_view wrong = rest.substr(0, end);
      rest.remove_prefix(end);
      std::string& content = file->second.content;
      if (right.empty() || wrong.empty() || occurrences(content, right) != 1)
        return problem(section.line, "what is right has to occur once in the file, and something has to replace it");
      content.replace(content.find(right), right.size(), wrong);
      if (occurrences(content, wrong) != 1)
        return problem(section.line, "what is wrong occurs elsewhere in the file, too");
      task_.repair.push_back({.path = section.path, .wrong = std::string(wrong), .right = std::string(right)});
    }
  }

  std::string_view text_;
  const std::string& id_;
  SweTask task_{};
  std::vector<TaskSection> sections_{};
  std::vector<std::string> problems_{};
};

}  // namespace

bool is_path_beneath(std::string_view path) {
  if (path.empty() || path.size() > kLongestPath || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, end - at);
    if (part.empty() || part == "." || part == ".." || part.size() > 255) return false;
    at = end + 1;
  }
  return true;
}

Result<SweTask> parse_swe_task(std::string_view text, const std::string& id) { return SweTaskReader(text, id).read(); }

}  // namespace carnot
