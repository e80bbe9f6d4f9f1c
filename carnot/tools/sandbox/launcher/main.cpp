// carnot-sandbox: starts one program in a sandbox and watches over it. docs/sandbox.md says what is promised.
//
// A separate program, without threads and small, because a process that trains models can neither fork cheaply nor
// enter a namespace. It applies every layer that it is asked for: a layer that the kernel refuses is a failure. `probe`
// prints what there is to be asked for.
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

#include "failure.h"
#include "lock_down.h"
#include "plan.h"
#include "program.h"

namespace carnot::launcher {
namespace {

void close_what_was_left_open() {
  for (int fd : {kControl, kReport}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (::syscall(SYS_close_range, kRemark + 1, ~0U, 0) == 0) return;
  for (int fd = kRemark + 1; fd < ::sysconf(_SC_OPEN_MAX); ++fd) ::close(fd);
}

void prefer_for_lack_of_memory() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, "1000", 4);
  ::close(fd);
}

void become(uid_t user) {
  need(::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0,
       "become user " + std::to_string(user));
  // What it would be had this user started the launcher: /proc shows the process as the user's own.
  need(::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0, "belong to the user");
}

int run(const Plan& plan) {
  try {
    prefer_for_lack_of_memory();
    if (plan.as_user != 0) become(plan.as_user);
    watch(plan, start_program(plan));
    return 0;
  } catch (const std::exception& failure) {
    const std::string line = std::string("failed ") + failure.what() + "\n";
    (void)!::write(kReport, line.data(), line.size());
    return 1;
  }
}

}  // namespace
}  // namespace carnot::launcher

int main(int count, char** arguments) {
  using namespace carnot::launcher;
  if (count == 2 && std::string(arguments[1]) == "probe") {
    std::printf("landlock %d\nsystem_calls %d\n", landlock_version(), has_system_call_filters() ? 1 : 0);
    return 0;
  }
  std::signal(SIGPIPE, SIG_IGN);
  close_what_was_left_open();
  Plan plan;
  std::string problem;
  if (!read_plan(count, arguments, plan, problem)) {
    std::fprintf(stderr, "carnot-sandbox: %s\n", problem.c_str());
    return 2;
  }
  ::_exit(run(plan));
}
