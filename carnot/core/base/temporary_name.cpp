#include "carnot/core/base/temporary_name.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBegin = ".carnot-", kEnd = ".tmp", kDigits = "0123456789abcdef";
constexpr std::size_t kNumDigits = 16;
constexpr int kAttempts = 100;  // two names of 64 random bits never collide; a second attempt means planted names

/// Calls `create` with new names until one was free. On failure it returns a negative number and sets errno.
template <class Create>
Result<std::pair<fs::path, int>> create_in(const fs::path& folder, const std::string& what, const Create& create) {
  for (int i = 0; i < kAttempts; ++i) {
    CARNOT_ASSIGN_OR_RETURN(const auto name, temporary_name());
    const fs::path path = folder / name;
    const int made = create(path.c_str());
    if (made >= 0) return std::pair(path, made);
    if (errno != EEXIST && errno != EINTR) break;
  }
  return system_error(folder.empty() ? "." : folder, what);
}

}  // namespace

Result<std::string> temporary_name() {
  std::uint64_t number = 0;
  while (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    if (errno != EINTR) return Error{std::string("the system gives no random numbers: ") + std::strerror(errno)};
  std::string name(kBegin);
  for (std::size_t i = 0; i < kNumDigits; ++i, number >>= 4) name += kDigits[number & 15];
  return name.append(kEnd);
}

std::string random_hexadecimal(std::size_t digits) {
  std::random_device device;
  std::string text;
  while (text.size() < digits) text += kDigits[device() % kDigits.size()];
  return text;
}

bool is_temporary_name(std::string_view name) {
  if (name.size() != kBegin.size() + kNumDigits + kEnd.size()) return false;
  const std::string_view digits = name.substr(kBegin.size(), kNumDigits);
  return name.starts_with(kBegin) && name.ends_with(kEnd) &&
         std::all_of(digits.begin(), digits.end(), [](char c) { return kDigits.find(c) != std::string_view::npos; });
}

Result<TemporaryFile> make_temporary_file(const fs::path& folder) {
  CARNOT_ASSIGN_OR_RETURN(const auto made, create_in(folder, "cannot create a file in it", [](const char* path) {
                            return ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
                          }));
  return TemporaryFile{.path = made.first, .descriptor = Descriptor(made.second)};
}

Result<fs::path> make_temporary_folder(const fs::path& parent) {
  const auto made =
      create_in(parent, "cannot create a folder in it", [](const char* path) { return ::mkdir(path, 0755); });
  if (!made) return made.error();
  return made->first;
}

Status remove_temporaries(const fs::path& folder) {
  std::error_code reason;
  if (!fs::exists(folder, reason)) return Done{};
  fs::directory_iterator entries(folder, reason);
  for (; !reason && entries != fs::directory_iterator(); entries.increment(reason))
    if (is_temporary_name(entries->path().filename().string())) {
      std::error_code problem;
      fs::remove_all(entries->path(), problem);
      if (problem) return Error{entries->path().string() + ": cannot remove: " + problem.message()};
    }
  if (reason) return Error{folder.string() + ": cannot list: " + reason.message()};
  return Done{};
}

}  // namespace carnot
