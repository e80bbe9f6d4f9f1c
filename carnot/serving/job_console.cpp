#include "carnot/serving/job_console.h"

#include "carnot/core/base/printable.h"
#include "carnot/core/cli/stop_signals.h"

namespace carnot {

JobControl prepare_job(const Console& console) {
  catch_stop_signals(StopLeaves::Nothing);
  const auto shown = [safe = console.terminal](std::string_view text) {
    return safe ? printable(text) : std::string(text);
  };
  return {.out = console.out, .shown = shown, .stop_requested = stop_requested};
}

}  // namespace carnot
