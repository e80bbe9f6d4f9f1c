#include "carnot/core/base/file.h"

#include <fcntl.h>
#include <lzma.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <istream>
#include <memory>
#include <optional>

#include "carnot/core/base/temporary_name.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(written);
  }
  return true;
}

using Content = std::function<Status(const PieceWriter& write)>;

/// `shown` is the name that the user knows.
Status write_content(int fd, const Content& make, const fs::path& shown) {
  return make([&](std::string_view piece) -> Status {
    if (write_all(fd, piece)) return Done{};
    return system_error(shown, "cannot write");
  });
}

/// The final target of a write to a path.
struct Target {
  fs::path path{};               ///< with all links resolved
  std::optional<mode_t> mode{};  ///< permissions of the existing file
  bool is_file = true;           ///< or will become one
};

Result<fs::path> behind_links(fs::path path) {
  constexpr int kMaxLinks = 40;  // as many as Linux follows
  std::error_code reason;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(path, reason)); ++i) {
    const fs::path next = fs::read_symlink(path, reason);
    if (reason) return Error{path.string() + ": cannot read the link: " + reason.message()};
    path = path.parent_path() / next;
  }
  return path;
}

Result<Target> find_target(const fs::path& path) {
  struct stat info{};
  const bool is_there = ::stat(path.c_str(), &info) == 0;
  if (!is_there && errno != ENOENT) return system_error(path, "cannot write");
  if (is_there && S_ISDIR(info.st_mode)) return Error{path.string() + ": is a folder, expected a file"};
  if (is_there && !S_ISREG(info.st_mode)) return Target{.path = path, .is_file = false};
  CARNOT_ASSIGN_OR_RETURN(const auto end, behind_links(path));
  Target target{.path = end};
  if (is_there) target.mode = info.st_mode & 07777;
  return target;
}

Status write_into(const fs::path& path, const Content& make) {
  Descriptor device(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!device.is_open()) return system_error(path, "cannot open for writing");
  CARNOT_RETURN_IF_ERROR(write_content(device.get(), make, path));
  if (!device.close()) return system_error(path, "cannot write");
  return Done{};
}

Status replace_file(const Target& target, const Content& make, const fs::path& shown) {
  const fs::path folder = target.path.has_parent_path() ? target.path.parent_path() : fs::path(".");
  auto temporary = make_temporary_file(folder);
  if (!temporary) return Error{shown.string() + ": cannot write: " + temporary.error().message};
  Descriptor& file = temporary->descriptor;
  const auto replace = [&]() -> Status {
    if (target.mode && ::fchmod(file.get(), *target.mode) != 0) return system_error(shown, "cannot write");
    CARNOT_RETURN_IF_ERROR(write_content(file.get(), make, shown));
    const bool replaced =
        ::fsync(file.get()) == 0 && file.close() && ::rename(temporary->path.c_str(), target.path.c_str()) == 0;
    if (!replaced) return system_error(shown, "cannot write");
    return Done{};
  };
  const Status replaced = replace();
  if (!replaced) ::unlink(temporary->path.c_str());
  return replaced ? sync_path(folder) : replaced;
}

Error too_large(const std::string& name, std::size_t limit) {
  return {name + ": holds more than " + std::to_string(limit >> 20) + " MiB, the most that is read"};
}

Result<std::string> with_few_lines(std::string text, const std::string& name) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (lines <= kMaxLines) return text;
  return Error{name + ": has " + std::to_string(lines) + " lines; at most " + std::to_string(kMaxLines) + " are read"};
}

std::string xz_problem(lzma_ret status) {
  if (status == LZMA_MEMLIMIT_ERROR)
    return "needs more than " + std::to_string(kMaxXzMemory >> 20) + " MiB of memory to expand";
  if (status == LZMA_MEM_ERROR) return "there is no memory to expand it";
  return "not a complete xz file";
}

/// True for a device with unlimited content (/dev/zero) or without text.
bool is_unreadable_device(int fd, const struct stat& info) {
  constexpr dev_t kNull = 0x103;  // /dev/null, which is an empty file
  return S_ISBLK(info.st_mode) || (S_ISCHR(info.st_mode) && info.st_rdev != kNull && ::isatty(fd) == 0);
}

/// Does not wait for a writer if it is a pipe.
Descriptor opened_to_read(const fs::path& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/// Waits if the pipe is empty and has writers.
ssize_t read_some(int fd, std::span<char> to) {
  for (;;) {
    const ssize_t got = ::read(fd, to.data(), to.size());
    if (got >= 0 || (errno != EINTR && errno != EAGAIN)) return got;
    pollfd state{.fd = fd, .events = POLLIN, .revents = 0};
    if (errno == EAGAIN) (void)::poll(&state, 1, -1);
  }
}

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    CARNOT_CHECK_EQ(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr), 1);
  }

  void add(std::string_view bytes) { CARNOT_CHECK_EQ(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()), 1); }

  std::string hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned int length = 0;
    CARNOT_CHECK_EQ(EVP_DigestFinal_ex(context_.get(), digest.data(), &length), 1);
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (unsigned int i = 0; i < length; ++i) {
      text += kDigits[digest[i] >> 4];
      text += kDigits[digest[i] & 15];
    }
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

}  // namespace

Result<std::string> read_file(const fs::path& path) {
  const Descriptor file = opened_to_read(path);
  if (!file.is_open()) return system_error(path, "cannot open");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "cannot read");
  if (S_ISDIR(info.st_mode)) return Error{path.string() + ": is a folder, expected a file"};
  if (is_unreadable_device(file.get(), info)) return Error{path.string() + ": is a device, expected a file or a pipe"};
  const auto size = static_cast<std::size_t>(info.st_size);
  const std::size_t limit = S_ISREG(info.st_mode) && size > 0 ? kMaxFileBytes : kMaxStreamBytes;  // /proc says 0
  if (size > limit) return too_large(path.string(), limit);
  std::string content;
  content.reserve(size);
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = read_some(file.get(), buffer);
    if (got < 0) return system_error(path, "cannot read");
    if (got == 0 && content.empty() && S_ISFIFO(info.st_mode))
      return Error{path.string() + ": is a pipe that nothing writes into; expected a file"};
    if (got == 0) return with_few_lines(std::move(content), path.string());
    content.append(buffer.data(), got);
    if (content.size() > limit) return too_large(path.string(), limit);
  }
}

Result<std::string> expand_xz(std::string_view packed, const std::string& name, std::size_t limit) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMaxXzMemory, LZMA_CONCATENATED) != LZMA_OK)
    return Error{name + ": xz cannot start"};
  const auto end = std::unique_ptr<lzma_stream, void (*)(lzma_stream*)>(&stream, lzma_end);
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  std::string out;
  std::array<std::uint8_t, 1 << 16> buffer;
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    stream.next_out = buffer.data();
    stream.avail_out = buffer.size();
    status = lzma_code(&stream, LZMA_FINISH);
    out.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream.avail_out);
    if (out.size() > limit) return too_large(name + ", expanded", limit);
  }
  if (status != LZMA_STREAM_END) return Error{name + ": " + xz_problem(status)};
  return out;
}

Result<std::string> read_maybe_compressed(const fs::path& path) {
  auto content = read_file(path);
  if (!content || path.extension() != ".xz") return content;
  CARNOT_ASSIGN_OR_RETURN(auto expanded, expand_xz(*content, path.string(), kMaxStreamBytes));
  return with_few_lines(std::move(expanded), path.string());
}

Result<std::string> read_stream(std::istream& in, const std::string& name, std::size_t limit) {
  std::string content;
  std::array<char, 1 << 16> buffer;
  while (in.read(buffer.data(), buffer.size()), in.gcount() > 0) {
    content.append(buffer.data(), in.gcount());
    if (content.size() > limit) return too_large(name, limit);
  }
  if (in.bad()) return Error{name + ": cannot read"};
  return with_few_lines(std::move(content), name);
}

Result<bool> read_line(std::istream& in, std::string& line, std::size_t limit) {
  line.clear();
  for (char c = 0; in.get(c);) {
    if (c == '\n') return true;
    if (line.size() == limit)
      return Error{"a line holds more than " + std::to_string(limit >> 20) + " MiB, the most that is read"};
    line += c;
  }
  return !line.empty();
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

Status sync_path(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return system_error(path, "cannot open");
  if (::fsync(file.get()) != 0) return system_error(path, "cannot sync");
  return Done{};
}

Status write_file_atomically(const fs::path& path, std::string_view content) {
  return write_file_atomically(path, std::span(&content, 1));
}

Status write_file_atomically(const fs::path& path, std::span<const std::string_view> pieces) {
  return write_file_atomically(path, [&](const PieceWriter& write) -> Status {
    for (const std::string_view piece : pieces) CARNOT_RETURN_IF_ERROR(write(piece));
    return Done{};
  });
}

Status write_file_atomically(const fs::path& path, const Content& make) {
  CARNOT_ASSIGN_OR_RETURN(const auto target, find_target(path));
  return target.is_file ? replace_file(target, make, path) : write_into(target.path, make);
}

Status make_folder(const fs::path& path) {
  std::error_code reason;
  std::vector<fs::path> above;  // of each missing folder
  for (fs::path missing = path; !missing.empty() && !fs::exists(missing, reason); missing = missing.parent_path())
    above.push_back(missing.has_parent_path() ? missing.parent_path() : fs::path("."));
  fs::create_directories(path, reason);
  if (reason) return Error{path.string() + ": cannot create the folder: " + reason.message()};
  for (const fs::path& folder : above)  // a new name survives a power failure once its folder is synced
    CARNOT_RETURN_IF_ERROR(sync_path(folder));
  if (::access(path.c_str(), W_OK) != 0) return system_error(path, "cannot write into the folder");
  return Done{};
}

std::string sha256_hex(std::string_view content) {
  Sha256 digest;
  digest.add(content);
  return digest.hex();
}

Result<std::string> sha256_of_file(const fs::path& path) {
  const Descriptor file = opened_to_read(path);
  if (!file.is_open()) return system_error(path, "cannot open");
  Sha256 digest;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = read_some(file.get(), buffer);
    if (got < 0) return system_error(path, "cannot read");
    if (got == 0) return digest.hex();
    digest.add({buffer.data(), static_cast<std::size_t>(got)});
  }
}

Result<Descriptor> open_regular_file(const std::filesystem::path& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return system_error(path, "cannot open");
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "cannot read");
  if (!S_ISREG(info.st_mode)) return Error{path.string() + ": is not a regular file"};
  return file;
}

Result<std::shared_ptr<MappedFile>> MappedFile::open(const std::filesystem::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto file, open_regular_file(path));
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return system_error(path, "cannot read");
  const auto size = static_cast<std::size_t>(info.st_size);
  void* data = nullptr;
  if (size > 0) data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return system_error(path, "cannot read");
  return std::shared_ptr<MappedFile>(new MappedFile(static_cast<char*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) ::munmap(data_, size_);
}

Error system_error(const std::filesystem::path& path, const std::string& what) {
  return {path.string() + ": " + what + ": " + std::strerror(errno)};
}

}  // namespace carnot
