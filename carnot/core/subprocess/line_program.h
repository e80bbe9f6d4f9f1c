// subprocess/line_program.h -- a program that is spoken to in lines; what it says on standard error goes to the log.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "carnot/core/subprocess/child_process.h"

namespace carnot {

/// Lines of what a program wrote that a message repeats.
inline constexpr std::size_t kLastWords = 5;

/// Lines out of a pipe, as they come, each of a bounded length.
class LineSplitter {
 public:
  /// A line of `longest` bytes or more is handed over cut, as soon as that many have come, with `whole` false; the rest
  /// of it is dropped.
  explicit LineSplitter(std::size_t longest) : longest_(longest) {}

  using OnLine = std::function<void(std::string_view line, bool whole)>;

  /// Reads what is there from a non-blocking descriptor, up to a megabyte, and calls `on_line` for every line that is
  /// complete, without its line break; a last line without one counts as complete at the end. False at the end of the
  /// stream.
  bool read(int descriptor, const OnLine& on_line);

 private:
  void add(std::string_view bytes, const OnLine& on_line);
  void end_line(const OnLine& on_line);

  std::size_t longest_;
  std::string line_{};
  bool dropping_ = false;
};

/// Called on a thread of the program's own, one after the other.
struct LineHandlers {
  /// A line of its output, cut where not `whole`. `where`: "NAME (process 71), line 12".
  std::function<void(std::string_view line, bool whole, const std::string& where)> on_line{};
  /// Its output has ended, and why: "NAME (process 71) exited with status 3". The last call.
  std::function<void(const std::string& why)> on_end{};
};

class LineProgram {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  /// Starts the program. `name`: in messages and in the log. `longest`: bytes of a line of its output.
  static Result<std::unique_ptr<LineProgram>> start(const std::string& name, const ProgramCall& call,
                                                    std::size_t longest);

  ~LineProgram() { close(); }
  LineProgram(const LineProgram&) = delete;
  LineProgram& operator=(const LineProgram&) = delete;

  /// Begins to read what it says. Once.
  void listen(LineHandlers handlers);

  /// Writes `line` and a line break. False if it takes no more before the deadline; a program that has ended takes
  /// everything. Any thread.
  bool write(std::string line, Deadline deadline);

  /// Closes its standard input, gives it half a second to end, and kills it then. No handler is called afterwards.
  void close();

  /// Any thread.
  void kill() { child_->kill(); }

  /// "NAME (process 71)".
  const std::string& label() const { return label_; }

  /// "; its last words: A | B" from its standard error; empty if it said nothing. Any thread.
  std::string last_words() const;

 private:
  LineProgram(const std::string& name, std::unique_ptr<ChildProcess> child, std::size_t longest);
  void read_all();
  bool read_words(LineSplitter& words);
  bool read_lines(LineSplitter& lines);

  std::string label_;
  std::unique_ptr<ChildProcess> child_;
  std::size_t longest_;
  Descriptor wake_;
  LineHandlers handlers_{};
  std::thread reader_{};
  std::int64_t lines_ = 0;  // of its output; the reader's
  std::mutex write_mutex_{};
  mutable std::mutex words_mutex_{};
  std::deque<std::string> last_words_{};
};

}  // namespace carnot
