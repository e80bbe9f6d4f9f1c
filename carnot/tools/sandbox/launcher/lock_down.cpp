#include "lock_down.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "failure.h"
#include "usage.h"

namespace carnot::launcher {
namespace {

// What the headers of older kernels lack.
constexpr std::uint64_t kRefer = 1ULL << 13, kTruncate = 1ULL << 14, kDeviceControl = 1ULL << 15;
constexpr std::uint64_t kBindTcp = 1ULL << 0, kConnectTcp = 1ULL << 1;
constexpr std::uint64_t kAbstractSockets = 1ULL << 0, kSignals = 1ULL << 1;

struct Ruleset {
  std::uint64_t files = 0;
  std::uint64_t network = 0;  // from version 4
  std::uint64_t scopes = 0;   // from version 6
};

constexpr std::uint64_t kAllOfVersion1 = (1ULL << 13) - 1;
constexpr std::uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr std::uint64_t kOfFiles = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE |
                                   LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate | kDeviceControl;
constexpr std::uint64_t kDevices = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;
// No devices and no sockets.
constexpr std::uint64_t kPrivate = kAllOfVersion1 & ~(std::uint64_t{LANDLOCK_ACCESS_FS_MAKE_CHAR} |
                                                      LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SOCK);

Ruleset rules_of(int version) {
  Ruleset rules{.files = kAllOfVersion1 | kRefer | kTruncate};
  if (version >= 5) rules.files |= kDeviceControl;
  if (version >= 4) rules.network = kBindTcp | kConnectTcp;
  if (version >= 6) rules.scopes = kAbstractSockets | kSignals;
  return rules;
}

std::size_t size_of_rules(int version) { return (version >= 6 ? 3 : version >= 4 ? 2 : 1) * sizeof(std::uint64_t); }

/// What is not there need not be allowed.
void allow(int ruleset, const std::string& path, std::uint64_t access) {
  const int fd = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return;
  struct stat entry{};
  need(::fstat(fd, &entry) == 0, "look at " + path);
  landlock_path_beneath_attr rule{};
  rule.allowed_access = S_ISDIR(entry.st_mode) ? access : access & kOfFiles;
  rule.parent_fd = fd;
  need(::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0, "allow " + path);
  ::close(fd);
}

// High enough that one call which starts processes without end is ended by the guard long before others of the same
// user can start none.
constexpr std::uint64_t kRoomBetweenLooks = 1024;

/// The kernel counts a limit for each user of each user namespace. Without a separate one the call shares the count
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

int landlock_version() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return version < 0 ? 0 : static_cast<int>(version);
}

void restrict_files(const Plan& plan) {
  const int version = landlock_version();
  const Ruleset rules = rules_of(version);
  const int ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, size_of_rules(version), 0));
  need(ruleset >= 0, "make rules for files");
  for (const char* path : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc/ld.so.cache",
                           "/etc/localtime", "/etc/alternatives"})
    allow(ruleset, path, kRead);
  if (plan.namespaces)  // there they are its own
    for (const char* path : {"/etc/passwd", "/etc/group"}) allow(ruleset, path, kRead);
  for (const std::string& path : plan.read) allow(ruleset, path, kRead);
  for (const char* path : {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"})
    allow(ruleset, path, kDevices);
  allow(ruleset, plan.home(), kPrivate | kRefer | kTruncate);
  if (plan.namespaces && !plan.shown_at.empty()) allow(ruleset, plan.shown_at, kPrivate | kRefer | kTruncate);
  need(::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0, "restrict files");
  ::close(ruleset);
}

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
