#include "carnot/worlds/swe/unified_diff.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

std::optional<std::size_t> take_diff_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (wrong != std::errc{} || number > 1'000'000'000) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool skip_text(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

struct HunkSizes {
  std::size_t old_start = 0;
  std::size_t old_lines = 1;
  std::size_t new_lines = 1;
};

/// "@@ -START[,LINES] +START[,LINES] @@"
std::optional<HunkSizes> read_hunk_header(std::string_view line) {
  HunkSizes sizes;
  if (!skip_text(line, "@@ -")) return std::nullopt;
  for (const bool is_old : {true, false}) {
    const auto start = take_diff_number(line);
    if (!start) return std::nullopt;
    std::size_t count = 1;
    if (skip_text(line, ",")) {
      const auto given = take_diff_number(line);
      if (!given) return std::nullopt;
      count = *given;
    }
    if (is_old) sizes.old_start = *start;
    (is_old ? sizes.old_lines : sizes.new_lines) = count;
    if (!skip_text(line, is_old ? " +" : " @@")) return std::nullopt;
  }
  return sizes;
}

class DiffReader {
 public:
  DiffReader(std::string_view patch, const std::string& name) : lines_(split_lines(patch)), name_(name) {}

  Result<std::vector<FileDiff>> read() {
    while (at_ < lines_.size() && !problem_) {
      const std::string_view line = lines_[at_];
      if (line.starts_with("GIT binary patch") || line.starts_with("Binary files "))
        fail("a change of a binary file");
      else if (line.starts_with("--- "))
        read_file();
      else if (skip_renames(line))
        ++at_;
    }
    if (problem_) return Error{*problem_};
    return std::move(files_);
  }

 private:
  void fail(const std::string& what) {
    if (!problem_) problem_ = name_ + ", line " + std::to_string(at_ + 1) + ": " + what;
  }

  /// A file may be renamed without a change of its content.
  bool skip_renames(std::string_view line) {
    if (skip_text(line, "rename from ")) renamed_from_ = line;
    if (skip_text(line, "rename to ") && !renamed_from_.empty())
      files_.push_back({.old_path = std::exchange(renamed_from_, ""), .new_path = std::string(line)});
    return true;
  }

  /// "a/PATH" or "b/PATH"; empty for /dev/null. A date may follow after a tab.
  std::optional<std::string> read_path(std::string_view line) {
    line = line.substr(4, line.substr(4).find('\t'));
    if (line == "/dev/null") return "";
    if (line.starts_with("a/") || line.starts_with("b/")) line.remove_prefix(2);
    if (!is_path_beneath(line)) {
      fail("'" + std::string(line) + "' is no path in the repository");
      return std::nullopt;
    }
    return std::string(line);
  }

  void read_file() {
    const auto old_path = read_path(lines_[at_]);
    if (!old_path) return;
    ++at_;
    if (at_ >= lines_.size() || !lines_[at_].starts_with("+++ ")) return fail("expected '+++ ' and a path");
    const auto new_path = read_path(lines_[at_]);
    if (!new_path) return;
    ++at_;
    if (old_path->empty() && new_path->empty()) return fail("a file that is neither before nor after");
    FileDiff file{.old_path = *old_path, .new_path = *new_path};
    // What git says about a rename comes before its hunks.
    if (!files_.empty() && files_.back().hunks.empty() && files_.back().new_path == *new_path) files_.pop_back();
    while (at_ < lines_.size() && lines_[at_].starts_with("@@") && !problem_) read_hunk(file);
    if (file.hunks.empty()) return fail("expected '@@ -START,LINES +START,LINES @@'");
    files_.push_back(std::move(file));
  }

  void read_hunk(FileDiff& file) {
    const auto sizes = read_hunk_header(lines_[at_]);
    if (!sizes) return fail("expected '@@ -START,LINES +START,LINES @@'");
    ++at_;
    DiffHunk hunk{.old_start = sizes->old_start};
    std::size_t old_left = sizes->old_lines, new_left = sizes->new_lines;
    for (; old_left > 0 || new_left > 0; ++at_) {
      if (at_ >= lines_.size()) return fail("the hunk ends before its last line");
      // Some tools leave out the blank of an empty line.
      const std::string_view line = lines_[at_].empty() ? std::string_view(" ") : lines_[at_];
      if (line.front() == '\\') {
        note_missing_newline(hunk);
        continue;
      }
      const bool is_old = line.front() != '+', is_new = line.front() != '-';
      const bool is_known = line.front() == ' ' || line.front() == '-' || line.front() == '+';
      if (!is_known || (is_old && old_left == 0) || (is_new && new_left == 0))
        return fail("expected a line with ' ', '-' or '+' before it, as many as the hunk's heading says");
      old_left -= is_old ? 1 : 0;
      new_left -= is_new ? 1 : 0;
      hunk.lines.emplace_back(line);
    }
    if (at_ < lines_.size() && lines_[at_].starts_with('\\')) {
      note_missing_newline(hunk);
      ++at_;
    }
    file.hunks.push_back(std::move(hunk));
  }

  static void note_missing_newline(DiffHunk& hunk) {
    if (hunk.lines.empty()) return;
    const char sign = hunk.lines.back().front();
    if (sign != '+') hunk.old_ends_without_newline = true;
    if (sign != '-') hunk.new_ends_without_newline = true;
  }

  std::vector<std::string_view> lines_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::string renamed_from_{};
  std::vector<FileDiff> files_{};
  std::optional<std::string> problem_{};
};

/// The new content, or what does not fit.
Result<std::string> apply_hunks(const FileDiff& file, const std::string& content) {
  const auto lines = split_lines(content);
  std::vector<std::string> result;
  std::size_t at = 0;
  bool ends_with_newline = content.empty() || content.back() == '\n';
  for (const DiffHunk& hunk : file.hunks) {
    const bool has_old =
        std::any_of(hunk.lines.begin(), hunk.lines.end(), [](const auto& line) { return line[0] != '+'; });
    const std::size_t start = has_old ? std::max<std::size_t>(hunk.old_start, 1) - 1 : hunk.old_start;
    if (start < at || start > lines.size()) return Error{"line " + std::to_string(hunk.old_start) + " is not there"};
    result.insert(result.end(), lines.begin() + static_cast<std::ptrdiff_t>(at),
                  lines.begin() + static_cast<std::ptrdiff_t>(start));
    at = start;
    for (const std::string& line : hunk.lines) {
      const std::string_view text = std::string_view(line).substr(1);
      if (line.front() != '+') {
        if (at >= lines.size() || lines[at] != text)
          return Error{"line " + std::to_string(at + 1) + " is not '" + std::string(text.substr(0, 60)) + "'"};
        ++at;
      }
      if (line.front() != '-') result.emplace_back(text);
    }
    if (at == lines.size()) ends_with_newline = !hunk.new_ends_without_newline;
  }
  result.insert(result.end(), lines.begin() + static_cast<std::ptrdiff_t>(at), lines.end());
  std::string text;
  for (std::size_t i = 0; i < result.size(); ++i) {
    text += result[i];
    if (i + 1 < result.size() || ends_with_newline) text += '\n';
  }
  return text;
}

}  // namespace

Result<std::vector<FileDiff>> parse_unified_diff(std::string_view patch, const std::string& name) {
  return DiffReader(patch, name).read();
}

Status apply_diff(const std::vector<FileDiff>& patch, SweFiles& files, const std::string& name) {
  SweFiles changed = files;
  for (const FileDiff& diff : patch) {
    const std::string& shown = diff.old_path.empty() ? diff.new_path : diff.old_path;
    const auto fail = [&](const std::string& what) { return Error{name + ": " + shown + ": " + what}; };
    SweFile file;
    if (!diff.old_path.empty()) {
      const auto found = changed.find(diff.old_path);
      if (found == changed.end()) return fail("there is no such file");
      file = std::move(found->second);
      changed.erase(found);
    }
    auto content = apply_hunks(diff, file.content);
    if (!content) return fail(content.error().message);
    if (diff.new_path.empty()) continue;
    file.content = std::move(content).value();
    changed[diff.new_path] = std::move(file);
  }
  files = std::move(changed);
  return Done{};
}

}  // namespace carnot
