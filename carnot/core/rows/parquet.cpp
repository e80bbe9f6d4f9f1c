#include "carnot/core/rows/parquet.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "carnot/core/base/limits.h"
#include "carnot/core/subprocess/line_program.h"
#include "carnot/core/subprocess/python_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr auto kLongestSilence = std::chrono::minutes(5);

/// What the converter writes; an empty line is its last.
class ConvertedRows {
 public:
  void add(std::string_view line, bool whole) {
    const std::lock_guard lock(mutex_);
    is_complete_ = line.empty();
    is_cut_ = is_cut_ || !whole || text_.size() + line.size() > kMaxStreamBytes;
    if (!is_cut_) text_.append(line) += '\n';
    ++lines_;
    if (is_complete_) changed_.notify_all();
  }

  void end(const std::string& why) {
    const std::lock_guard lock(mutex_);
    end_ = why;
    changed_.notify_all();
  }

  /// Waits until all rows are there. The error says why they are not.
  Result<std::string> take() {
    std::unique_lock lock(mutex_);
    for (std::int64_t before = -1; !is_complete_ && end_.empty() && lines_ != before;) {
      before = lines_;
      changed_.wait_for(lock, kLongestSilence);
    }
    if (is_cut_) return Error{"its rows are longer than " + std::to_string(kMaxStreamBytes >> 20) + " MiB as JSON"};
    if (is_complete_) return std::move(text_);
    return Error{end_.empty() ? "nothing was read for five minutes" : end_};
  }

 private:
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::string text_{}, end_{};
  std::int64_t lines_ = 0;
  bool is_complete_ = false, is_cut_ = false;
};

Result<std::string> converted(const fs::path& script, const fs::path& file, const std::string& python) {
  const ProgramCall call{.command = {python, script.string(), file.string()}};
  CARNOT_ASSIGN_OR_RETURN(auto program, LineProgram::start("parquet_to_jsonl.py", call, kMaxLineBytes));
  ConvertedRows rows;
  program->listen({.on_line = [&](std::string_view line, bool whole, const std::string&) { rows.add(line, whole); },
                   .on_end = [&](const std::string& why) { rows.end(why); }});
  auto text = rows.take();
  program->close();  // before `rows` is gone
  if (!text) return Error{text.error().message + program->last_words()};
  return text;
}

}  // namespace

bool is_parquet(std::string_view bytes) { return bytes.starts_with("PAR1"); }

Result<std::string> parquet_as_json_lines(const fs::path& file, const std::string& python) {
  CARNOT_ASSIGN_OR_RETURN(const auto folder, python_folder());
  const fs::path script = folder / "parquet_to_jsonl.py";
  auto text = converted(script, file, python);
  if (text) return text;
  return Error{file.string() + ": is a Parquet file, and " + text.error().message + "; expected " + python +
               " with pyarrow, or JSON lines, which `python3 " + script.string() + " " + file.string() + " " +
               fs::path(file).replace_extension(".jsonl").string() + "` makes of it"};
}

}  // namespace carnot
