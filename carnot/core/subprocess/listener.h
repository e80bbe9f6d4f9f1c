// subprocess/listener.h -- a program that receives lines on its standard input and answers nothing.
//
// Callers never wait: lines queue, a thread hands them over, and what does not fit is dropped and
// counted. A program that ends is started again, a few times. What it writes goes to the log. Nothing that it does is
// an error of the caller.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/subprocess/child_process.h"

namespace carnot {

struct ListenerOptions {
  std::string name{};  ///< in the log
  ProgramCall program{};
  std::size_t queue_bytes = std::size_t{16} << 20;  ///< of lines that wait; beyond, new ones are dropped
  int starts = 3;                                   ///< of the program, the first included
  double pause_seconds = 5;                         ///< before the second start; doubled before every other
  double finish_seconds = 30;  ///< from finish(), or the end of this process, to its end; then it is killed
  int logged_lines = 200;      ///< of what it writes, in all
};

/// What the listener itself sends the program. Called from its thread. Lines are without their end.
struct ListenerLines {
  std::function<std::string(int start)> greeting{};          ///< the first line of each start, counted from 1
  std::function<std::string(std::int64_t lines)> dropped{};  ///< so many lines are missing before the next one
};

/// How it went.
struct ListenerEnd {
  std::int64_t dropped = 0;  ///< lines that no process was sent
  int starts = 0;
  bool in_time = false;  ///< the program was sent everything else, and ended by itself, before the deadline
};

class Listener {
 public:
  /// The error says why the program cannot be started.
  static Result<std::unique_ptr<Listener>> start(ListenerOptions options, ListenerLines lines);

  /// Kills the program if it was not finished.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Any thread; returns at once.
  void tell(std::string line);

  /// The same for a line that every later start of the program is sent after its greeting, in place of the one before.
  /// It always fits.
  void introduce(std::string line);

  /// Sends `line` as the last one, closes its standard input and waits for it to end. What went wrong is in the
  /// log. Once only.
  ListenerEnd finish(std::string line);

 private:
  class Thread;
  explicit Listener(std::unique_ptr<Thread> thread);
  std::unique_ptr<Thread> thread_;
};

}  // namespace carnot
