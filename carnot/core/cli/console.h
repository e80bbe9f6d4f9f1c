// cli/console.h -- what a command talks to, and how it ends.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <span>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

/// The program's exit status.
enum class Exit : int {
  Success = 0,
  Failure = 1,        ///< bad input, or a run that failed; the message is on standard error
  Usage = 2,          ///< the command line could not be understood
  Alarm = 3,          ///< an alarm ended the run (alarm.stop); a checkpoint is written
  Internal = 70,      ///< a bug
  GroupLost = 75,     ///< another rank ended or hangs; the same command, started again, continues
  Interrupted = 130,  ///< stopped by a signal
};

struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool terminal = false;  ///< `out` is a terminal: colours, progress bars
};

/// Columns of the terminal that standard output is, as it is now; 80 if there is none.
int terminal_columns();

/// Writes every line of the message after "carnot: ", fit to show (base/printable.h). Returns `exit`.
Exit report(const Console& console, const Error& error, Exit exit = Exit::Failure);

/// Writes each of them after "carnot: warning: ".
void warn(const Console& console, std::span<const std::string> warnings);

/// Success, or what report says.
Exit ended(const Status& status, const Console& console);

/// Writes the text, or what report says.
Exit print(const Result<std::string>& text, const Console& console);

/// Writes `text` to the file `output`; to standard output where that is empty.
Exit write_output(const std::string& text, const std::filesystem::path& output, const Console& console);

}  // namespace carnot
