#include "carnot/plane/served_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "carnot/base/file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::string_view kFolder = "/files/";
constexpr std::chrono::hours kFetchTime{2};
constexpr std::size_t kRefusalBytes = std::size_t{64} << 10;  // of an answer that is no file

}  // namespace

struct ServedFiles::Source {
  Descriptor file{};
  std::string content{};  ///< where there is no file
  std::int64_t bytes = 0;

  std::string piece(std::int64_t from) const {
    const auto size = static_cast<std::size_t>(std::min<std::int64_t>(kPiece, bytes - from));
    if (!file.is_open()) return content.substr(static_cast<std::size_t>(from), size);
    std::string data(size, '\0');
    std::size_t got = 0;
    while (got < size) {
      const ssize_t count = ::pread(file.get(), data.data() + got, size - got, static_cast<off_t>(from + got));
      if (count < 0 && errno == EINTR) continue;
      CARNOT_CHECK(count > 0, std::string("a served file cannot be read: ") + std::strerror(errno));
      got += static_cast<std::size_t>(count);
    }
    return data;
  }
};

Result<PlaneFile> ServedFiles::take(const fs::path& path) {
  const auto hash = sha256_of_file(path);
  if (!hash) return hash.error();
  auto source = std::make_shared<Source>();
  source->file = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!source->file.is_open()) return Error{path.string() + ": " + std::strerror(errno)};
  std::error_code problem;
  source->bytes = static_cast<std::int64_t>(fs::file_size(path, problem));
  if (!problem) fs::remove(path, problem);
  if (problem) return Error{path.string() + ": " + problem.message()};
  const PlaneFile file{.sha256 = *hash, .bytes = source->bytes};
  const std::lock_guard lock(mutex_);
  files_[file.sha256] = std::move(source);
  return file;
}

PlaneFile ServedFiles::add(std::string content) {
  auto source = std::make_shared<Source>();
  const PlaneFile file{.sha256 = sha256_hex(content), .bytes = static_cast<std::int64_t>(content.size())};
  source->bytes = file.bytes;
  source->content = std::move(content);
  const std::lock_guard lock(mutex_);
  files_[file.sha256] = std::move(source);
  return file;
}

void ServedFiles::drop(const PlaneFile& file) {
  const std::lock_guard lock(mutex_);
  files_.erase(file.sha256);
}

std::shared_ptr<const ServedFiles::Source> ServedFiles::find(std::string_view sha256) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(sha256);
  return found == files_.end() ? nullptr : found->second;
}

HttpReply ServedFiles::answer(std::string_view path) const {
  const auto source = path.starts_with(kFolder) ? find(path.substr(kFolder.size())) : nullptr;
  if (!source) return {.status = 404, .body = "no such file", .content_type = "text/plain"};
  return {.content_type = "application/octet-stream",
          .pieces = [source, at = std::int64_t{0}]() mutable -> std::optional<std::string> {
            if (at == source->bytes) return std::nullopt;
            std::string piece = source->piece(at);
            at += static_cast<std::int64_t>(piece.size());
            return piece;
          }};
}

HttpHeaders key_header(const std::string& key) {
  if (key.empty()) return {};
  return {{"Authorization", "Bearer " + key}};
}

Error key_refusal(const Url& url) {
  return Error{"the trainer at " + url.shown() +
               " refuses the key; expected the one it was started with (rollout.plane_key_env there, --key-env here)"};
}

Result<PlaneAttempt> fetch_file(const Url& url, const std::string& key, const PlaneFile& file, const fs::path& path,
                                const std::function<bool()>& go_on) {
  const Url address = url.append("files/" + file.sha256);
  const auto failed = [&](const std::string& why) {
    std::error_code ignored;
    fs::remove(path, ignored);
    return PlaneAttempt{.why_not = why};
  };
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const auto answer = http_stream(
      {.url = address, .headers = key_header(key)},
      {.time = kFetchTime, .answer_bytes = std::max(static_cast<std::size_t>(file.bytes) + 1, kRefusalBytes)},
      [&](const HttpAnswer&, std::string_view piece) {
        out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
        return out.good() && go_on();
      });
  out.close();
  if (!answer) return failed(answer.error().message);
  if (answer->status == 401) return key_refusal(url);
  if (!answer->is_success()) return failed("GET " + address.shown() + ": status " + std::to_string(answer->status));
  if (!out) return failed(path.string() + ": cannot be written");
  const auto hash = sha256_of_file(path);
  if (!hash) return failed(hash.error().message);
  if (*hash != file.sha256) return failed("GET " + address.shown() + ": what came has another SHA-256 than announced");
  return PlaneAttempt{.done = true};
}

}  // namespace carnot
