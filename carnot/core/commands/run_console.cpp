#include "carnot/core/commands/run_console.h"

#include <ostream>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/base/log.h"

namespace carnot {

void prepare_to_compute() {
  keep_freed_memory();
  log_to_console(LogLevel::Info);
}

RunControl prepare_run(const Console& console, StopLeaves leaves) {
  catch_stop_signals(leaves);
  prepare_to_compute();
  return {
      .out = console.out, .terminal = console.terminal, .columns = terminal_columns, .stop_requested = stop_requested};
}

Exit exit_of(RunEnd end) {
  switch (end) {
    case RunEnd::Interrupted: return Exit::Interrupted;
    case RunEnd::Alarm: return Exit::Alarm;
    case RunEnd::Complete: break;
  }
  return Exit::Success;
}

Exit ended(const Result<RunEnd>& end, const Console& console) {
  console.out << std::flush;
  if (!end) return report(console, end.error());
  return exit_of(*end);
}

}  // namespace carnot
