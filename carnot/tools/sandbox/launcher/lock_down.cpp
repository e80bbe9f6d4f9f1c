#include "lock_down.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "failure.h"
#include "landlock.h"
#include "system_calls.h"
#include "usage.h"

namespace carnot::launcher {
namespace {

// High enough that one call which starts processes without end is ended by the guard long before others of the same
// user can start none.
constexpr std::uint64_t kRoomBetweenLooks = 1024;

/// The kernel counts a limit for each user of each user namespace. Without one of its own the call shares the count
/// with all that its user runs, so that the guard counts, and the kernel's limit is the second line.
std::uint64_t limit_of_processes(const Plan& plan) {
  return plan.namespaces ? plan.processes : threads_of_user(::geteuid()) + plan.processes + kRoomBetweenLooks;
}

void limit(__rlimit_resource_t resource, std::uint64_t soft, std::uint64_t hard) {
  rlimit before{};
  need(::getrlimit(resource, &before) == 0, "read limits");
  const rlimit wanted{.rlim_cur = std::min<rlim_t>(soft, before.rlim_max),
                      .rlim_max = std::min<rlim_t>(hard, before.rlim_max)};
  need(::setrlimit(resource, &wanted) == 0, "set limit " + std::to_string(resource));
}

void set_limits(const Plan& plan) {
  limit(RLIMIT_AS, plan.memory, plan.memory);
  limit(RLIMIT_CPU, plan.cpu, plan.cpu + 1);
  const std::uint64_t processes = limit_of_processes(plan);
  limit(RLIMIT_NPROC, processes, processes);
  limit(RLIMIT_NOFILE, plan.open_files, plan.open_files);
  limit(RLIMIT_FSIZE, plan.disk, plan.disk);
  limit(RLIMIT_STACK, 8 << 20, 8 << 20);
  for (const auto resource : {RLIMIT_CORE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE, RLIMIT_NICE, RLIMIT_RTPRIO})
    limit(resource, 0, 0);
  limit(RLIMIT_SIGPENDING, 64, 64);
}

}  // namespace

void give_up_rights(uid_t user) {
  for (unsigned long right = 0; right < 64; ++right) (void)::prctl(PR_CAPBSET_DROP, right, 0, 0, 0);
  if (::geteuid() == 0 || ::geteuid() != user) {
    need(::setgroups(0, nullptr) == 0, "leave groups");
    need(::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0,
         "become user " + std::to_string(user));
  }
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[2] = {};
  need(::syscall(SYS_capset, &header, none) == 0, "drop capabilities");
  need(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "refuse new rights");
}

void lock_down(const Plan& plan) {
  set_limits(plan);
  if (plan.landlock) restrict_files(plan);
  if (plan.system_calls) filter_system_calls(plan);
}

}  // namespace carnot::launcher
