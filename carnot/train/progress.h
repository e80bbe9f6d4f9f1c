// train/progress.h -- a progress bar with the time that is left, the only place that draws.
//
// On a terminal one line is redrawn; elsewhere (log files, CI) a stage prints nothing if it is short and at most
// four lines if it is long. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace carnot {

class Progress {
 public:
  using Seconds = std::function<double()>;  ///< a clock that only goes forward

  struct Options {
    bool terminal = false;
    int width = 79;             ///< columns of the terminal
    double redraw_every = 0.1;  ///< seconds
    double quiet_for = 30;      ///< off a terminal: seconds between lines, and before the first one
    Seconds now = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
  };

  Progress(std::ostream& out, Options options) : out_(out), options_(std::move(options)) {}
  ~Progress() { end(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Starts a stage of `total` units, and ends the one before it.
  void begin(std::string_view stage, std::int64_t total);

  /// `done` units are done by now.
  void update(std::int64_t done);

  /// Ends the stage and takes its bar off the screen.
  void end();

  /// A line of text above the bar.
  void print(std::string_view line);

 private:
  void draw();
  void erase();
  std::string status() const;

  std::ostream& out_;
  Options options_;
  std::string stage_{};
  std::int64_t total_ = 0;
  std::int64_t done_ = 0;
  double began_ = 0;
  double shown_ = 0;  ///< when something was drawn or printed last
  int quarters_ = 0;  ///< that lines were printed for
  bool on_screen_ = false;
};

/// 75 -> "1:15", 3700 -> "1:01:40".
std::string clock_time(double seconds);

}  // namespace carnot
