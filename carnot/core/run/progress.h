// run/progress.h -- a progress bar with the time that is left, the only place that draws.
//
// Stages may be nested (an evaluation inside training): the innermost is shown, and when it ends the one
// around it continues where it was. On a terminal one line is redrawn; elsewhere (log files, CI) a stage prints nothing
// if it is short, and if it is long a line now and then, at twice the time of the last one and every ten minutes at
// least. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace carnot {

/// How long the rest of some work takes, by what this process did of it. It reads no clock.
/// Units that an earlier process finished say nothing about this one's speed: they are left out.
class Pace {
 public:
  /// Work of `total` units, of which `done` were finished when it began at `now` (seconds of any clock).
  Pace(std::int64_t done, std::int64_t total, double now) : first_(done), done_(done), total_(total), began_(now) {}

  /// `done` of all units are finished by `now`.
  void update(std::int64_t done, double now);

  std::int64_t done() const { return done_; }
  std::int64_t total() const { return total_; }

  /// Seconds from `now` on, at the mean speed so far. None before 2 % were finished here: where many units are in work
  /// at once, the first take as long as all. None once all are.
  std::optional<double> seconds_left(double now) const;

 private:
  std::int64_t first_;
  std::int64_t done_;
  std::int64_t total_;
  double began_;
  double updated_ = 0;  ///< when `done_` was last reported
};

class Progress {
 public:
  using Seconds = std::function<double()>;  ///< a clock that only goes forward

  struct Options {
    bool terminal = false;
    std::function<int()> columns = [] { return 80; };  ///< of the terminal, asked whenever something is drawn
    double redraw_every = 0.1;                         ///< seconds
    double quiet_for = 30;                             ///< off a terminal: seconds before the first line
    Seconds now = [] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    };
  };

  Progress(std::ostream& out, Options options) : out_(out), options_(std::move(options)) {}
  ~Progress() { erase(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Starts a stage of `total` units inside the present one. Of these, `done` were done before it began: they count for
  /// the position, and not for the estimate.
  void begin(std::string_view stage, std::int64_t total, std::int64_t done = 0);

  /// `done` units are done by now, those from before included.
  void update(std::int64_t done);

  /// Ends the innermost stage and takes its bar off the screen.
  void end();

  /// A line of text above the bar.
  void print(std::string_view line);

  /// Of the innermost stage, by its pace so far; empty if nothing is known.
  std::optional<double> seconds_left() const;

  /// How wide a line may be: the terminal's columns less one, since a full line wraps on some; 119 elsewhere. The bar
  /// leaves two more for the ^C that a terminal shows, and is shorter where the text next to it needs the room.
  int width() const;

 private:
  struct Stage {
    std::string name{};
    Pace pace;
    double began = 0;
    double shown = 0;  ///< when something was drawn or printed last
  };

  void draw();
  void erase();
  std::string status() const;

  std::ostream& out_;
  Options options_;
  std::vector<Stage> stages_{};  ///< the innermost last
  bool on_screen_ = false;
};

/// 75 -> "1:15", 3700 -> "1:01:40".
std::string clock_time(double seconds);

}  // namespace carnot
