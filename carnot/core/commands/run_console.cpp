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

Exit ended(const Result<RunEnd>& end, const Console& console) {
  console.out << std::flush;
  if (!end) return report(console, end.error());
  return *end == RunEnd::Interrupted ? Exit::Interrupted : Exit::Success;
}

}  // namespace carnot
