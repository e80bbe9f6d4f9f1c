#include "carnot/core/run/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "carnot/core/base/file.h"
#include "carnot/core/base/host_name.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr char kLockFile[] = ".carnot-lock";

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", ::gmtime_r(&now, &parts));
  return text.data();
}

void write_holder(int file) {
  const OrderedJson holder{{"pid", ::getpid()}, {"host", host_name()}, {"since", time_now()}};
  const std::string line = holder.dump(-1, ' ', true, OrderedJson::error_handler_t::replace) + "\n";
  // If this fails, another process can report no name; the lock holds all the same.
  if (::ftruncate(file, 0) == 0) (void)!::pwrite(file, line.data(), line.size(), 0);
}

/// "process 12 on HOST since ...": what another process wrote, or half of it.
std::string holder_in(int file) {
  std::array<char, 1024> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  const auto length = static_cast<std::size_t>(std::max<ssize_t>(size, 0));
  const auto holder = parse_json_object<OrderedJson>({text.data(), length}, kLockFile);
  const auto is_text = [&](const char* key) { return holder->contains(key) && holder->at(key).is_string(); };
  const bool readable =
      holder && holder->contains("pid") && holder->at("pid").is_number_integer() && is_text("host") && is_text("since");
  if (!readable) return "another process";
  return "process " + holder->at("pid").dump() + " on " + holder->at("host").get<std::string>() + " since " +
         holder->at("since").get<std::string>();
}

/// The folders that make_folder(`path`) would make, the innermost first.
std::vector<fs::path> missing_folders(fs::path path) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  for (; !path.empty() && !fs::exists(path, ignored); path = path.parent_path()) missing.push_back(path);
  return missing;
}

void remove_empty(const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders)
    if (::rmdir(folder.c_str()) != 0) return;
}

enum class Attempt { Locked, Held, Unsupported, Gone };

/// Gone: the file's last holder removed it meanwhile.
Attempt lock(int file, const fs::path& path) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Attempt::Held : Attempt::Unsupported;
  }
  struct stat locked{}, named{};
  if (::fstat(file, &locked) != 0 || ::stat(path.c_str(), &named) != 0) return Attempt::Gone;
  return locked.st_dev == named.st_dev && locked.st_ino == named.st_ino ? Attempt::Locked : Attempt::Gone;
}

}  // namespace

LockState lock_state(const fs::path& folder) {
  const Descriptor file(::open((folder / kLockFile).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.is_open()) return LockState::Free;
  return ::flock(file.get(), LOCK_SH | LOCK_NB) == 0 ? LockState::Abandoned : LockState::Held;
}

Result<FolderLock> FolderLock::take(const fs::path& folder) {
  const fs::path where = (fs::absolute(folder) / "").lexically_normal().parent_path(), path = where / kLockFile;
  const std::vector<fs::path> made = missing_folders(where);
  const auto refused = [&](Error error) {
    remove_empty(made);
    return error;
  };
  constexpr int kAttempts = 100;
  for (int i = 0; i < kAttempts; ++i) {
    if (const Status there = make_folder(where); !there) return refused(there.error());
    Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (!file.is_open() && errno == ENOENT) continue;  // its last holder removed the folder
    if (!file.is_open()) return refused(system_error(path, "cannot lock the folder"));
    const Attempt attempt = lock(file.get(), path);
    if (attempt == Attempt::Gone) continue;
    if (attempt == Attempt::Held)
      return Error{folder.string() + ": is being written by " + holder_in(file.get()) +
                   "; wait until it has ended, or name another folder"};
    if (attempt == Attempt::Unsupported)
      log_warning(system_error(folder, "cannot be locked, so see to it that no other process writes into it").message);
    write_holder(file.get());
    return FolderLock(where, std::move(file), made);
  }
  return Error{folder.string() + ": its lock comes and goes; another process is starting and ending there"};
}

FolderLock::~FolderLock() {
  if (!file_.is_open()) return;
  ::unlink((folder_ / kLockFile).c_str());  // while it is held: who opened it meanwhile finds another file, or none
  (void)file_.close();
  remove_empty(made_);
}

}  // namespace carnot
