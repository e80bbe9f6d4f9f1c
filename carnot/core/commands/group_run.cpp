#include "carnot/core/commands/group_run.h"

#include <unistd.h>

#include <ostream>
#include <utility>

#include "carnot/core/base/log.h"
#include "carnot/core/collectives/join.h"

namespace carnot {
namespace {

/// Threads of the group's connections may wait for ranks that are gone: the process ends without them.
[[noreturn]] void leave_lost_group(const Console& console, const GroupLost& lost) {
  console.out << std::flush;
  if (lost.is_to_tell()) report(console, {lost.what()}, Exit::GroupLost);
  console.err << std::flush;
  _exit(static_cast<int>(Exit::GroupLost));
}

Exit end_of_rank(const Result<RunEnd>& end, const Console& console, int rank) {
  if (rank == 0) return ended(end, console);
  // Ranks end alike, and rank 0 has said why.
  if (!end) return Exit::Failure;
  return exit_of(*end);
}

}  // namespace

void log_as_rank(int rank) { log_to_console(rank == 0 ? LogLevel::Info : LogLevel::Error); }

Exit run_in_group(const Console& console, StopLeaves leaves, const RankSetting& setting,
                  const ProcessGroupOptions& options, const std::function<Result<RunEnd>(const RunControl&)>& run) {
  auto joined = join_ranks(setting, options);
  if (!joined) return report(console, joined.error());
  const std::shared_ptr<Collectives> group = std::move(joined).value();
  std::ostream nowhere(nullptr);
  const RunControl own = prepare_run(console, leaves);
  log_as_rank(group->rank());
  const bool first = group->rank() == 0;
  const RunControl control{.out = first ? own.out : nowhere,
                           .terminal = first && own.terminal,
                           .columns = own.columns,
                           .stop_requested = own.stop_requested,
                           .group = group};
  try {
    const auto end = run(control);
    group->leave();
    return end_of_rank(end, console, group->rank());
  } catch (const GroupLost& lost) {
    leave_lost_group(console, lost);
  } catch (const std::exception& error) {
    group->fail(error.what());
    throw;
  }
}

}  // namespace carnot
