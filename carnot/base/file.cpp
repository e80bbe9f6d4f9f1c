#include "carnot/base/file.h"

#include <fcntl.h>
#include <lzma.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace carnot {
namespace {

namespace fs = std::filesystem;

Error system_error(const std::string& what, const fs::path& path) {
  return {path.string() + ": " + what + ": " + std::strerror(errno)};
}

/// Closes the descriptor on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Result<std::string> decompress_xz(const std::string& packed, const fs::path& path) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK)
    return Error{path.string() + ": xz cannot start"};
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
  }
  if (status != LZMA_STREAM_END) return Error{path.string() + ": not a complete xz file"};
  return out;
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
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return system_error("cannot open", path);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return system_error("cannot read", path);
  if (S_ISDIR(info.st_mode)) return Error{path.string() + ": is a folder, expected a file"};
  std::string content;
  content.reserve(static_cast<std::size_t>(info.st_size));
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", path);
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

Result<std::string> read_maybe_compressed(const fs::path& path) {
  auto content = read_file(path);
  if (!content || path.extension() != ".xz") return content;
  return decompress_xz(*content, path);
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
  if (file.get() < 0) return system_error("cannot open", path);
  if (::fsync(file.get()) != 0) return system_error("cannot sync", path);
  return Done{};
}

Status write_file_atomically(const fs::path& path, std::string_view content) {
  return write_file_atomically(path, std::span(&content, 1));
}

Status write_file_atomically(const fs::path& path, std::span<const std::string_view> pieces) {
  fs::path temporary = path;
  temporary += ".tmp";
  {
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) return system_error("cannot create", temporary);
    const bool written =
        std::all_of(pieces.begin(), pieces.end(), [&](std::string_view piece) { return write_all(file.get(), piece); });
    if (!written || ::fsync(file.get()) != 0 || !file.close()) {
      const Error error = system_error("cannot write", temporary);
      ::unlink(temporary.c_str());
      return error;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = system_error("cannot rename " + temporary.string() + " to this name", path);
    ::unlink(temporary.c_str());
    return error;
  }
  return sync_path(path.has_parent_path() ? path.parent_path() : fs::path("."));
}

Status make_folder(const fs::path& path) {
  std::error_code reason;
  fs::create_directories(path, reason);
  if (reason) return Error{path.string() + ": cannot create the folder: " + reason.message()};
  if (::access(path.c_str(), W_OK) != 0) return system_error("cannot write into the folder", path);
  return Done{};
}

std::string sha256_hex(std::string_view content) {
  Sha256 digest;
  digest.add(content);
  return digest.hex();
}

Result<std::string> sha256_of_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return system_error("cannot open", path);
  Sha256 digest;
  std::array<char, 1 << 16> buffer;
  while (true) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("cannot read", path);
    if (got == 0) return digest.hex();
    digest.add({buffer.data(), static_cast<std::size_t>(got)});
  }
}

}  // namespace carnot
