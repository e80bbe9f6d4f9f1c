// carnot-supervisor: runs a program, and kills everything that it has started once it ends or Carnot does.
//
//   carnot-supervisor MILLISECONDS PROGRAM [ARGUMENT ...]
//
// A separate program: the system hands orphans to a process that asks for them, and it has to outlive Carnot. It has
// one thread, so it may fork. MILLISECONDS is the time that the program has to end by itself once Carnot is gone.
// SIGTERM kills at once. It ends as the program did.
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

#include "protocol.h"

namespace carnot::supervisor {
namespace {

using Clock = std::chrono::steady_clock;

void report(SupervisorReport::Kind kind, int value) {
  const SupervisorReport report{.kind = kind, .value = value};
  (void)!::write(kReport, &report, sizeof report);
}

/// Of the process that was forked off: becomes the program, in a new process group.
[[noreturn]] void become(char** command, pid_t supervisor) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvp(command[0], command);
  report(SupervisorReport::Kind::Failed, errno);
  ::_exit(127);
}

class Supervisor {
 public:
  Supervisor(pid_t program, int signals, std::chrono::milliseconds grace)
      : program_(program), signals_(signals), grace_(grace) {}

  /// Until nothing is left; how the program ended.
  int run() {
    while (!program_has_ended() && !is_overdue()) wait();
    kill_all();
    return status_;
  }

 private:
  /// Reaps orphans; leaves the program itself, so that its process group keeps its number.
  bool program_has_ended() {
    siginfo_t ended{};
    while (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid > 0) {
      if (ended.si_pid == program_) return true;
      ::waitpid(ended.si_pid, nullptr, 0);
      ended = {};
    }
    return false;
  }

  void wait() {
    pollfd events[] = {{.fd = deadline_ ? -1 : kCarnot, .events = 0, .revents = 0},  // a hang-up is always reported
                       {.fd = signals_, .events = POLLIN, .revents = 0}};
    (void)::poll(events, 2, patience());
    if (events[0].revents != 0) deadline_ = Clock::now() + grace_;
    signalfd_siginfo signal;
    while (::read(signals_, &signal, sizeof signal) == sizeof signal)
      if (signal.ssi_signo == SIGTERM) deadline_ = Clock::now();
  }

  bool is_overdue() const { return deadline_ && Clock::now() >= *deadline_; }

  int patience() const {
    if (!deadline_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(left, 0));
  }

  /// Only children: no one else can reap them, so that no number is another process's meanwhile. Theirs become ours.
  void kill_all() {
    ::kill(-program_, SIGKILL);
    for (int tries = 0; tries < kTries; ++tries) {
      std::ifstream children("/proc/self/task/" + std::to_string(::getpid()) + "/children");
      for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
      int status = 0;
      pid_t ended = 0;
      while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0)
        if (ended == program_) status_ = status;
      if (ended < 0 && errno == ECHILD) return;
      ::usleep(1000);
    }
  }

  static constexpr int kTries = 5000;  // milliseconds: one that waits for a dead disk cannot be killed

  pid_t program_;
  int signals_;
  std::chrono::milliseconds grace_;
  std::optional<Clock::time_point> deadline_{};
  int status_ = SIGKILL;  // of one that could not be waited for
};

[[noreturn]] void end_as(int status) {
  if (WIFEXITED(status)) ::_exit(WEXITSTATUS(status));
  ::prctl(PR_SET_DUMPABLE, 0);  // the program has left a core already
  sigset_t all;
  ::sigfillset(&all);
  ::raise(WTERMSIG(status));
  ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
  ::_exit(128 + WTERMSIG(status));
}

}  // namespace
}  // namespace carnot::supervisor

int main(int count, char** arguments) {
  using namespace carnot::supervisor;
  if (count < 3) return 2;
  for (const int end : {kCarnot, kReport}) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  const int signals = ::signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t self = ::getpid(), program = ::fork();
  if (program == 0) become(arguments + 2, self);
  report(program > 0 ? SupervisorReport::Kind::Started : SupervisorReport::Kind::Failed, program > 0 ? program : errno);
  for (const int end : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, kReport}) ::close(end);
  if (program < 0) return 127;
  end_as(Supervisor(program, signals, std::chrono::milliseconds(std::atoi(arguments[1]))).run());
}
