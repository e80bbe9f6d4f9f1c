#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "failure.h"
#include "lock_down.h"
#include "program.h"

namespace carnot::launcher {
namespace {

constexpr const char* kAllowed[] = {
    // files
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2", "open",
    "openat", "openat2", "creat", "close", "close_range", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs",
    "fstatfs", "lseek", "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents", "getdents64",
    "getcwd", "chdir", "fchdir", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename", "renameat", "renameat2",
    "link", "linkat", "symlink", "symlinkat", "umask", "truncate", "ftruncate", "fallocate", "fsync", "fdatasync",
    "flock", "dup", "dup2", "dup3", "pipe", "pipe2", "poll", "ppoll", "select", "pselect6", "epoll_create",
    "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "timerfd_create",
    "timerfd_settime", "timerfd_gettime", "signalfd", "signalfd4", "sendfile", "copy_file_range", "fadvise64",
    "readahead",
    // memory
    "brk", "mmap", "munmap", "mremap", "mprotect", "madvise", "msync", "mincore", "membarrier",
    // processes and threads
    "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "futex", "futex_waitv",
    "set_robust_list", "get_robust_list", "set_tid_address", "rseq", "arch_prctl", "sched_yield", "sched_getaffinity",
    "sched_setaffinity", "sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
    "getcpu", "getpriority", "getrlimit", "getrusage", "times", "restart_syscall",
    // signals and time
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigsuspend", "rt_sigtimedwait",
    "sigaltstack", "pause", "alarm", "getitimer", "setitimer", "nanosleep", "clock_nanosleep", "clock_gettime",
    "clock_getres", "gettimeofday", "time",
    // who and where
    "getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups",
    "getpgid", "getpgrp", "getsid", "capget", "sysinfo", "uname", "getrandom",
    // a pair of connected sockets within the program
    "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg", "recvmmsg", "shutdown", "getsockopt", "setsockopt",
    "getsockname", "getpeername"};

/// In separate namespaces these concern the program alone.
constexpr const char* kAllowedInNamespaces[] = {"setsid", "setpgid", "chmod",     "fchmod",   "fchmodat",
                                                "utime",  "utimes",  "utimensat", "futimesat"};

/// Next to kill, and with the place of the signal among the arguments.
struct SignalCall {
  const char* name;
  unsigned signal;
};
constexpr SignalCall kSignalCalls[] = {{"tkill", 1}, {"tgkill", 2}, {"rt_sigqueueinfo", 1}};

/// Calls that reach out of the sandbox, or hold memory that no limit counts.
constexpr const char* kRefused[] = {
    // sockets
    "socket", "bind", "connect", "listen", "accept", "accept4",
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "kcmp", "pidfd_open",
    "pidfd_getfd", "pidfd_send_signal",
    // namespaces and mounts
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsmount",
    "fsconfig", "fspick", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
    // devices, owners, users, keys
    "mknod", "mknodat", "chown", "fchown", "lchown", "fchownat", "setuid", "setgid", "setreuid", "setregid",
    "setresuid", "setresgid", "setfsuid", "setfsgid", "setgroups", "capset", "keyctl", "add_key", "request_key",
    // memory that is shared or not counted
    "memfd_create", "memfd_secret", "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "msgget", "msgsnd",
    "msgrcv", "msgctl", "mq_open", "mq_unlink", "mlock", "mlock2", "mlockall", "mbind", "set_mempolicy", "move_pages",
    "migrate_pages",
    // the kernel
    "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register", "io_setup",
    "io_submit", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon",
    "swapoff", "sethostname", "setdomainname", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "acct",
    "quotactl", "syslog", "iopl", "ioperm", "vhangup", "landlock_create_ruleset", "landlock_add_rule",
    "landlock_restrict_self", "seccomp",
    // watching, priorities, pipes to elsewhere
    "fanotify_init", "inotify_init", "inotify_init1", "personality", "sched_setscheduler", "sched_setparam",
    "sched_setattr", "setpriority", "ioprio_set", "vmsplice", "splice", "tee"};

/// Programs that copy attributes along with a file continue without them.
constexpr const char* kUnsupported[] = {"setxattr",   "lsetxattr",   "fsetxattr",    "getxattr",
                                        "lgetxattr",  "fgetxattr",   "listxattr",    "llistxattr",
                                        "flistxattr", "removexattr", "lremovexattr", "fremovexattr"};

class Filter {
 public:
  Filter() : rules_(::seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), ::seccomp_release) {
    need(rules_ != nullptr, "make rules for system calls");
    // Threads that start others look up their rules in few steps.
    (void)::seccomp_attr_set(rules_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    (void)::seccomp_attr_set(rules_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
  }

  void rule(const char* name, std::uint32_t action, std::initializer_list<scmp_arg_cmp> when = {}) {
    const int number = ::seccomp_syscall_resolve_name(name);
    if (number < 0) return;  // this architecture has none of that name
    errno = -::seccomp_rule_add_array(rules_.get(), action, number, static_cast<unsigned>(when.size()), when.begin());
    need(errno == 0, std::string("rule for ") + name);
  }
  void allow(const char* name, std::initializer_list<scmp_arg_cmp> when = {}) { rule(name, SCMP_ACT_ALLOW, when); }
  void refuse(const char* name, std::initializer_list<scmp_arg_cmp> when = {}) {
    rule(name, SCMP_ACT_ERRNO(EPERM), when);
  }

  void load() {
    errno = -::seccomp_load(rules_.get());
    need(errno == 0, "filter system calls");
  }

 private:
  std::unique_ptr<void, decltype(&::seccomp_release)> rules_;
};

/// The low 32 bits, for arguments of that size whose upper half is whatever the register held.
constexpr scmp_arg_cmp equal32(unsigned argument, std::uint32_t value) {
  return {.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = 0xffffffff, .datum_b = value};
}

void add_argument_rules(Filter& filter) {
  // Threads and processes, but no namespaces: new ones would bring rights to attack the kernel with. clone3 has its
  // flags in memory, where no filter sees them; the C library goes back to clone.
  constexpr std::uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                        CLONE_NEWPID | CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */;
  filter.allow("clone", {{.arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = kNamespaces, .datum_b = 0}});
  filter.allow("socketpair", {equal32(0, AF_UNIX)});
  for (const std::uint32_t request : {std::uint32_t{TCGETS}, std::uint32_t{TIOCGWINSZ}, std::uint32_t{FIONREAD},
                                      std::uint32_t{FIONBIO}, std::uint32_t{FIOCLEX}, std::uint32_t{FIONCLEX}})
    filter.allow("ioctl", {equal32(1, request)});
  for (const std::uint32_t option :
       {std::uint32_t{PR_SET_NAME}, std::uint32_t{PR_GET_NAME}, std::uint32_t{PR_SET_PDEATHSIG},
        std::uint32_t{PR_GET_DUMPABLE}, std::uint32_t{PR_CAPBSET_READ}, std::uint32_t{PR_GET_NO_NEW_PRIVS},
        std::uint32_t{PR_GET_SECCOMP}, std::uint32_t{0x53564d41} /* PR_SET_VMA: names of memory, by the C library */})
    filter.allow("prctl", {equal32(0, option)});
}

/// The low `bits` bits of an argument are not those of `value`: one condition for each, of which one has to hold.
std::vector<scmp_arg_cmp> differs(unsigned argument, std::uint32_t value, unsigned bits) {
  std::vector<scmp_arg_cmp> ways;
  for (std::uint32_t bit = 1; bit < (1U << bits); bit <<= 1)
    ways.push_back({.arg = argument, .op = SCMP_CMP_MASKED_EQ, .datum_a = bit, .datum_b = ~value & bit});
  return ways;
}

constexpr unsigned kSignalBits = 7, kCommandBits = 11, kLimitBits = 5;

/// Nothing in the sandbox can end the program with SIGKILL but its guard: where that happens, it came from outside.
/// Timers of POSIX, which could, are missing from the list.
void keep_from_faking_the_end(Filter& filter) {
  filter.refuse("fcntl", {equal32(1, F_SETSIG)});
  for (const scmp_arg_cmp& other : differs(1, F_SETSIG, kCommandBits)) filter.allow("fcntl", {other});
  filter.refuse("setrlimit", {equal32(0, RLIMIT_CPU)});
  for (const scmp_arg_cmp& other : differs(0, RLIMIT_CPU, kLimitBits)) {
    filter.allow("setrlimit", {other});
    scmp_arg_cmp limit = other;
    limit.arg = 1;
    filter.allow("prlimit64", {equal32(0, 0), limit});
  }
  const scmp_arg_cmp only_asks{.arg = 2, .op = SCMP_CMP_EQ, .datum_a = 0, .datum_b = 0};
  filter.allow("prlimit64", {equal32(0, 0), equal32(1, RLIMIT_CPU), only_asks});
}

/// Any signal but SIGKILL to any process; that one to single processes other than the program, which is the second
/// here.
void add_signals_of_namespaces(Filter& filter) {
  constexpr std::uint32_t kProgram = kProgramId, kIsNegative = 1U << 31, kIdBits = 22;
  for (const scmp_arg_cmp& other : differs(1, SIGKILL, kSignalBits)) filter.allow("kill", {other});
  for (std::uint32_t bit = 1; bit < (1U << kIdBits); bit <<= 1)
    if (bit != kProgram)
      filter.allow("kill", {{.arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = kIsNegative | bit, .datum_b = bit},
                            equal32(1, SIGKILL)});
  for (const std::uint32_t target : {kProgram, 0U}) filter.refuse("kill", {equal32(0, target), equal32(1, SIGKILL)});
  filter.refuse("kill", {{.arg = 0, .op = SCMP_CMP_MASKED_EQ, .datum_a = kIsNegative, .datum_b = kIsNegative},
                         equal32(1, SIGKILL)});
  for (const auto& [name, signal] : kSignalCalls) {
    for (const scmp_arg_cmp& other : differs(signal, SIGKILL, kSignalBits)) filter.allow(name, {other});
    filter.refuse(name, {equal32(signal, SIGKILL)});
  }
}

/// Without a PID namespace: signals to itself, as abort() and raise() send them.
void add_own_signals(Filter& filter) {
  const auto self = static_cast<std::uint32_t>(::getpid());
  for (const char* name : kAllowedInNamespaces) filter.refuse(name);
  for (const char* name : {"tkill", "rt_sigqueueinfo"}) filter.refuse(name);
  for (const SignalCall& call : {SignalCall{"kill", 1}, SignalCall{"tgkill", 2}}) {
    for (const scmp_arg_cmp& other : differs(call.signal, SIGKILL, kSignalBits))
      filter.allow(call.name, {equal32(0, self), other});
    filter.refuse(call.name, {equal32(0, self), equal32(call.signal, SIGKILL)});
    filter.refuse(call.name, {{.arg = 0, .op = SCMP_CMP_NE, .datum_a = self, .datum_b = 0}});
  }
}

}  // namespace

bool has_system_call_filters() {
  const std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

void filter_system_calls(const Plan& plan) {
  Filter filter;
  for (const char* name : kAllowed) filter.allow(name);
  add_argument_rules(filter);
  keep_from_faking_the_end(filter);
  if (plan.namespaces) {
    for (const char* name : kAllowedInNamespaces) filter.allow(name);
    add_signals_of_namespaces(filter);
  } else {
    add_own_signals(filter);
  }
  for (const char* name : kRefused) filter.refuse(name);
  for (const char* name : kUnsupported) filter.rule(name, SCMP_ACT_ERRNO(EOPNOTSUPP));
  filter.load();
}

}  // namespace carnot::launcher
