#include "carnot/core/cli/stop_signals.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "carnot/core/cli/console.h"

namespace carnot {
namespace {

constexpr std::string_view kToCheckpoint =
    "carnot: stopping soon; a checkpoint will be written.\n"
    "carnot: Ctrl-C again stops now; the last checkpoint stays.\n";
constexpr std::string_view kToNothing = "carnot: stopping soon. Ctrl-C again stops now.\n";
constexpr std::string_view kNow = "carnot: stopped\n";

volatile std::sig_atomic_t stop_signals = 0;
volatile std::sig_atomic_t on_terminal = 0;
volatile std::sig_atomic_t leaves_checkpoint = 0;
std::atomic<bool> is_asked_for = false;
static_assert(std::atomic<bool>::is_always_lock_free, "signal handlers read it");

// Called by signal handlers: nothing but write().
void say(std::string_view text) {
  const int before = errno;
  // On a terminal, a progress bar and ^C are on the line.
  [[maybe_unused]] ssize_t written = on_terminal ? ::write(STDERR_FILENO, "\n", 1) : 0;
  written = ::write(STDERR_FILENO, text.data(), text.size());  // if this fails, the run stops all the same
  errno = before;
}

extern "C" void on_stop_signal(int) {
  if (stop_signals > 0 || !is_asked_for) {
    say(kNow);
    _exit(static_cast<int>(Exit::Interrupted));
  }
  stop_signals = 1;
  say(leaves_checkpoint ? kToCheckpoint : kToNothing);
}

}  // namespace

void catch_stop_signals(StopLeaves leaves) {
  on_terminal = isatty(STDERR_FILENO);
  leaves_checkpoint = leaves == StopLeaves::Checkpoint ? 1 : 0;
  struct sigaction action{};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool stop_requested() {
  is_asked_for = true;
  return stop_signals > 0;
}

}  // namespace carnot
