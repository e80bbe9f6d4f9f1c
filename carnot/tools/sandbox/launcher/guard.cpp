#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "failure.h"
#include "program.h"
#include "usage.h"

namespace carnot::launcher {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kBetweenLooks{20};

class Guard {
 public:
  Guard(const Plan& plan, const Program& program) : plan_(plan), program_(program) {
    sigset_t child;
    ::sigemptyset(&child);
    ::sigaddset(&child, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &child, nullptr);
    ends_ = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    need(ends_ >= 0, "wait for processes");
  }

  void run() {
    while (!reap()) {
      pollfd events[] = {{.fd = is_abandoned_ ? -1 : kControl, .events = POLLIN, .revents = 0},
                         {.fd = ends_, .events = POLLIN, .revents = 0}};
      const int patience = deadline_ ? static_cast<int>(kBetweenLooks.count()) : -1;
      if (::poll(events, 2, patience) < 0 && errno != EINTR) refuse("wait");
      if (events[0].revents != 0) take_orders();
      if (events[1].revents != 0) drain_signals();
      if (deadline_) look();
    }
    end_the_rest();
    if (was_killed_from_outside()) reason_ = "lost";
    report();
    // If the process that gives the orders was killed, the program may have ended first, as its input did.
    wait_for_the_last_order();
    std::error_code problem;
    if (!plan_.folder.empty()) std::filesystem::remove_all(plan_.folder, problem);
  }

 private:
  /// True once the program has ended.
  bool reap() {
    for (int status = 0;;) {
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended <= 0) return false;
      if (ended != program_.id) continue;
      end_ = {.status = status, .cpu_seconds = cpu_seconds_of_ended_children()};
      return true;
    }
  }

  void drain_signals() {
    signalfd_siginfo info;
    while (::read(ends_, &info, sizeof info) == sizeof info) {
    }
  }

  void take_orders() {
    char text[64] = {};
    const ssize_t size = ::read(kControl, text, sizeof text - 1);
    double seconds = 0;
    if (size > 0 && std::sscanf(text, "run %lf", &seconds) == 1)
      deadline_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    else
      kill("stopped");
    is_abandoned_ = size <= 0;
  }

  static void wait_for_the_last_order() {
    pollfd orders{.fd = kControl, .events = 0, .revents = 0};
    while ((orders.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0) (void)::poll(&orders, 1, -1);
  }

  void look() {
    if (Clock::now() >= *deadline_) return kill("time");
    const auto processes = descendants(::getpid());
    if (memory_of(processes, plan_.memory) > plan_.memory) return kill("memory");
    if (cpu_seconds(processes) > static_cast<double>(plan_.cpu)) return kill("cpu");
    if (!plan_.namespaces && threads_of(processes) > plan_.processes) return kill("processes");
    if (plan_.folder.empty()) return;
    const FolderUse use = folder_use(plan_.folder, kMostEntries);
    if (use.bytes > plan_.disk || use.entries > kMostEntries) kill("disk");
  }

  void kill(const char* reason) {
    if (reason_ == "none") reason_ = reason;
    ::kill(plan_.namespaces ? program_.id : -program_.id, SIGKILL);
  }

  void end_the_rest() {
    if (plan_.namespaces)  // the kernel has ended the others
      hear_of_the_end();
    else
      kill_the_rest();
  }

  void hear_of_the_end() {
    ProgramEnd reported;
    if (::read(program_.result, &reported, sizeof reported) == sizeof reported) {
      end_ = reported;
      return;
    }
    if (reason_ == "none") reason_ = "lost";  // the init was killed from outside, or could not set up
  }

  void kill_the_rest() const {
    for (int tries = 0; tries < 1000; ++tries) {
      ::kill(-program_.id, SIGKILL);
      for (const pid_t orphan : descendants(::getpid())) ::kill(orphan, SIGKILL);
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      if (::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD) return;
      ::usleep(1000);
    }
  }

  /// The filter of system calls keeps the program from ending itself so.
  bool was_killed_from_outside() const {
    const bool is_killed = WIFSIGNALED(end_.status) && WTERMSIG(end_.status) == SIGKILL;
    return is_killed && reason_ == "none" && plan_.system_calls && end_.cpu_seconds < static_cast<double>(plan_.cpu);
  }

  void report() const {
    const bool is_signal = WIFSIGNALED(end_.status);
    char line[128];
    const int size =
        std::snprintf(line, sizeof line, "end %s %d %s %.6f\n", is_signal ? "signal" : "exit",
                      is_signal ? WTERMSIG(end_.status) : WEXITSTATUS(end_.status), reason_.c_str(), end_.cpu_seconds);
    (void)!::write(kReport, line, static_cast<std::size_t>(size));
  }

  const Plan& plan_;
  Program program_;
  int ends_ = -1;
  std::optional<Clock::time_point> deadline_{};
  bool is_abandoned_ = false;  // no one is left to report to
  std::string reason_ = "none";
  ProgramEnd end_{};
};

}  // namespace

void watch(const Plan& plan, const Program& program) { Guard(plan, program).run(); }

}  // namespace carnot::launcher
