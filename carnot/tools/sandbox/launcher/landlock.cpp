#include "landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "failure.h"

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

}  // namespace carnot::launcher
