// subprocess/line_splitter.h -- lines out of a pipe, as they come, each of a bounded length.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace carnot {

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

}  // namespace carnot
