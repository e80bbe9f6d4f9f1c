#include "carnot/remote_rollouts/transport/served_files.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::string_view kFolder = "/files/";
constexpr std::chrono::hours kFetchTime{2};
constexpr std::chrono::seconds kStall{20};
constexpr std::size_t kRefusalBytes = std::size_t{64} << 10;  // of an answer that is no file

/// Cancels an exchange in which nothing moves.
class StallGuard {
 public:
  std::stop_token cancel() const { return cancel_.get_token(); }
  void moved() { ++moves_; }

 private:
  void watch(const std::stop_token& end) {
    std::mutex mutex;
    std::condition_variable_any never;
    for (int last = -1; last != moves_;) {
      last = moves_;
      std::unique_lock lock(mutex);
      never.wait_for(lock, end, kStall, [] { return false; });
      if (end.stop_requested()) return;
    }
    cancel_.request_stop();
  }

  std::atomic<int> moves_ = 0;
  std::stop_source cancel_{};
  std::jthread thread_{[this](const std::stop_token& end) { watch(end); }};
};

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

/// One of those that are under way, from its first piece to its last.
class ServedFiles::Upload {
 public:
  Upload(std::shared_ptr<Uploads> all, std::shared_ptr<const Source> source)
      : all_(std::move(all)), source_(std::move(source)) {
    ++all_->under_way;
  }
  ~Upload() { --all_->under_way; }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  std::optional<std::string> next() {
    if (at_ == source_->bytes) return std::nullopt;
    std::string piece = source_->piece(at_);
    at_ += static_cast<std::int64_t>(piece.size());
    all_->bytes += static_cast<std::int64_t>(piece.size());
    return piece;
  }

 private:
  std::shared_ptr<Uploads> all_;
  std::shared_ptr<const Source> source_;
  std::int64_t at_ = 0;
};

Result<WorkerFile> ServedFiles::take(const fs::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto hash, sha256_of_file(path));
  std::error_code problem;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path, problem));
  if (problem) return Error{path.string() + ": " + problem.message()};
  const WorkerFile file{.sha256 = hash, .bytes = bytes};
  CARNOT_RETURN_IF_ERROR(take(path, file));
  return file;
}

Status ServedFiles::take(const fs::path& path, const WorkerFile& known) {
  CARNOT_ASSIGN_OR_RETURN(auto file, open_regular_file(path));
  auto source = std::make_shared<Source>();
  source->file = std::move(file);
  source->bytes = known.bytes;
  std::error_code problem;
  fs::remove(path, problem);
  if (problem) return Error{path.string() + ": " + problem.message()};
  const std::lock_guard lock(mutex_);
  files_[known.sha256] = std::move(source);
  return Done{};
}

WorkerFile ServedFiles::add(std::string content) {
  auto source = std::make_shared<Source>();
  const WorkerFile file{.sha256 = sha256_hex(content), .bytes = static_cast<std::int64_t>(content.size())};
  source->bytes = file.bytes;
  source->content = std::move(content);
  const std::lock_guard lock(mutex_);
  files_[file.sha256] = std::move(source);
  return file;
}

void ServedFiles::drop(const WorkerFile& file) {
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
  const auto upload = std::make_shared<Upload>(uploads_, source);
  if (most_uploads_ > 0 && source->file.is_open() && uploads_->under_way > most_uploads_)
    return {.status = 503, .body = "as many files are being sent as may be", .content_type = "text/plain"};
  return {.content_type = "application/octet-stream", .pieces = [upload] { return upload->next(); }};
}

HttpHeaders key_header(const std::string& key) {
  if (key.empty()) return {};
  return {{"Authorization", "Bearer " + key}};
}

Error key_refusal(const Url& url) {
  return Error{
      "the trainer at " + url.shown() +
      " refuses the key; expected the one it was started with (rollout.workers_key_env there, --key-env here)"};
}

Result<WorkerAttempt> fetch_file(const Url& url, const std::string& key, const WorkerFile& file, const fs::path& path,
                                 const std::function<bool()>& go_on) {
  const Url address = url.append("files/" + file.sha256);
  const auto failed = [&](const std::string& why) {
    std::error_code ignored;
    fs::remove(path, ignored);
    return WorkerAttempt{.why_not = why};
  };
  StallGuard guard;
  bool ended = false;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  const auto answer = http_stream({.url = address, .headers = key_header(key)},
                                  {.time = kFetchTime,
                                   .answer_bytes = std::max(static_cast<std::size_t>(file.bytes) + 1, kRefusalBytes),
                                   .cancel = guard.cancel()},
                                  [&](const HttpAnswer&, std::string_view piece) {
                                    guard.moved();
                                    out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
                                    ended = !go_on();
                                    return out.good() && !ended;
                                  });
  out.close();
  if (!answer) return failed(answer.error().message);
  if (answer->status == 401) return key_refusal(url);
  if (ended) return failed("GET " + address.shown() + ": ended before the file was whole");
  if (answer->status == 503) {
    WorkerAttempt attempt = failed(address.shown() + ": is busy sending files");
    attempt.is_busy = true;
    return attempt;
  }
  if (!answer->is_success()) return failed("GET " + address.shown() + ": status " + std::to_string(answer->status));
  if (!out) return failed(path.string() + ": cannot be written");
  const auto hash = sha256_of_file(path);
  if (!hash) return failed(hash.error().message);
  if (*hash != file.sha256) {
    WorkerAttempt attempt = failed("GET " + address.shown() + ": what came has a SHA-256 other than announced");
    attempt.is_damaged = true;
    return attempt;
  }
  return WorkerAttempt{.done = true};
}

}  // namespace carnot
