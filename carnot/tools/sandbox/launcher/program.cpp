#include "program.h"

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "failure.h"
#include "lock_down.h"
#include "private_root.h"
#include "usage.h"

namespace carnot::launcher {
namespace {

void write_file(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  need(fd >= 0, "open " + path);
  const bool done = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  need(done, "write " + path);
  ::close(fd);
}

[[noreturn]] void execute(const Plan& plan) {
  const std::string home = plan.home();
  // The same for every call: what a run computes depends on its recipe, not on who started it. Libraries of linear
  // algebra would take memory for each processor.
  std::vector<std::string> variables{"PATH=/usr/local/bin:/usr/bin:/bin",
                                     "HOME=" + home,
                                     "TMPDIR=" + home,
                                     "LANG=C.UTF-8",
                                     "PYTHONHASHSEED=0",
                                     "PYTHONDONTWRITEBYTECODE=1",
                                     "OMP_NUM_THREADS=1",
                                     "OPENBLAS_NUM_THREADS=1",
                                     "MKL_NUM_THREADS=1",
                                     "MPLBACKEND=Agg"};
  std::vector<char*> environment, arguments;
  for (std::string& one : variables) environment.push_back(one.data());
  environment.push_back(nullptr);
  for (const std::string& one : plan.command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(arguments[0], arguments.data(), environment.data());
  refuse("start " + plan.command.front());
}

/// Without privileges a user maps itself alone; root maps itself, to build, and nobody, to run.
void map_users(pid_t child, bool as_root) {
  const std::string folder = "/proc/" + std::to_string(child);
  const std::string inside = std::to_string(kInside), nobody = std::to_string(kNobody);
  if (as_root) {
    const std::string both = "0 0 1\n" + inside + " " + nobody + " 1\n";
    write_file(folder + "/uid_map", both);
    write_file(folder + "/gid_map", both);
    return;
  }
  write_file(folder + "/setgroups", "deny");
  write_file(folder + "/uid_map", inside + " " + std::to_string(::geteuid()) + " 1\n");
  write_file(folder + "/gid_map", inside + " " + std::to_string(::getegid()) + " 1\n");
}

Program start_in_namespaces(const Plan& plan) {
  const bool as_root = ::geteuid() == 0;
  const std::vector<SharedFolder> folders = find_folders(plan);
  int mapped[2], result[2];
  make_pipe(mapped);
  make_pipe(result);
  constexpr unsigned long kNamespaces =
      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
  const auto child = static_cast<pid_t>(::syscall(SYS_clone, kNamespaces | SIGCHLD, nullptr, nullptr, nullptr, 0));
  need(child >= 0, "make namespaces");
  if (child == 0)
    run_child([&] {
      ::close(mapped[1]);
      (void)::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
      char byte = 0;
      if (::read(mapped[0], &byte, 1) != 1) ::_exit(kSetupFailed);
      if (as_root) need(::setresgid(0, 0, 0) == 0 && ::setresuid(0, 0, 0) == 0, "become root of the namespaces");
      ::setsid();
      enter_private_root(plan, folders, kInside);
      need(::sethostname("sandbox", 7) == 0, "name the host");
      give_up_rights(kInside);
      // Changing users has cleared it; and no process that is left behind may outlive the launcher.
      need(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0, "die with the launcher");
      lock_down(plan);
      be_first_process(plan, result[1]);
    });
  ::close(mapped[0]);
  ::close(result[1]);
  try {
    map_users(child, as_root);
  } catch (...) {
    ::close(mapped[1]);  // the child ends
    (void)::waitpid(child, nullptr, 0);
    throw;
  }
  (void)!::write(mapped[1], "x", 1);
  ::close(mapped[1]);
  return {.id = child, .result = result[0]};
}

Program start_as_child(const Plan& plan) {
  need(::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0, "take over orphans");
  const pid_t launcher = ::getpid();
  const pid_t child = ::fork();
  need(child >= 0, "start a process");
  if (child == 0)
    run_child([&] {
      need(::setpgid(0, 0) == 0, "make a process group");
      const uid_t user = ::geteuid() == 0 ? kNobody : ::geteuid();
      need(::chown(plan.folder.c_str(), user, static_cast<gid_t>(-1)) == 0 && ::chdir(plan.folder.c_str()) == 0,
           "enter " + plan.folder);
      ::umask(0077);
      give_up_rights(user);
      need(::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 && ::getppid() == launcher, "die with the launcher");
      lock_down(plan);
      execute(plan);
    });
  return {.id = child};
}

}  // namespace

void be_first_process(const Plan& plan, int result) {
  const pid_t program = ::fork();
  need(program >= 0, "start a process");
  need(program == 0 || program == kProgramId, "be the second process");
  if (program == 0) run_child([&] { execute(plan); });
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO, kRequest, kRemark}) ::close(fd);
  ProgramEnd end;
  for (int status = 0;;) {
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended == program) {
      end.status = status;
      break;
    }
    if (ended < 0 && errno != EINTR) ::_exit(kSetupFailed);
  }
  end.cpu_seconds = cpu_seconds_of_ended_children();
  (void)!::write(result, &end, sizeof end);
  ::_exit(0);
}

Program start_program(const Plan& plan) { return plan.namespaces ? start_in_namespaces(plan) : start_as_child(plan); }

}  // namespace carnot::launcher
