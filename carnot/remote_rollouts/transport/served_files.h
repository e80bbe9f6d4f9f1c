// remote_rollouts/transport/served_files.h -- files that an HTTP server gives by their SHA-256, and the other side: a
// file fetched and checked.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"
#include "carnot/http/client.h"
#include "carnot/http/server.h"
#include "carnot/remote_rollouts/transport/messages.h"

namespace carnot {

/// Any thread.
class ServedFiles {
 public:
  /// `most_uploads`: of files from the disk at a time, 0: any number. Further requests are asked to try again.
  explicit ServedFiles(int most_uploads = 0) : most_uploads_(most_uploads) {}

  /// Serves what the file holds from now on, and takes the file's name away: nothing is left when the process ends. It
  /// must not be written to any more.
  Result<WorkerFile> take(const std::filesystem::path& path);
  /// The same of a file whose size and hash are known.
  Status take(const std::filesystem::path& path, const WorkerFile& known);
  WorkerFile add(std::string content);

  /// Answers that have begun are completed.
  void drop(const WorkerFile& file);

  /// The answer to GET /files/SHA256.
  HttpReply answer(std::string_view path) const;

  /// Of all answers so far.
  std::int64_t bytes_sent() const { return uploads_->bytes; }

 private:
  struct Source;
  struct Uploads {
    std::atomic<int> under_way = 0;
    std::atomic<std::int64_t> bytes = 0;
  };
  class Upload;
  std::shared_ptr<const Source> find(std::string_view sha256) const;

  int most_uploads_;
  std::shared_ptr<Uploads> uploads_ = std::make_shared<Uploads>();  ///< answers may outlive this

  mutable std::mutex mutex_{};
  std::map<std::string, std::shared_ptr<const Source>, std::less<>> files_{};
};

/// What may succeed another time.
struct WorkerAttempt {
  bool done = false;
  std::string why_not{};
  bool is_busy = false;     ///< the other side has too much to do at the moment
  bool is_damaged = false;  ///< what came is not what was asked for
};

/// Fetches `file` from the server `url` into `path`. Not done where the server does not answer, or sends nothing for 20
/// seconds, where what it gives has another size or hash, or where `go_on` ends it; then there is no file. An error
/// where the server refuses the key.
Result<WorkerAttempt> fetch_file(const Url& url, const std::string& key, const WorkerFile& file,
                                 const std::filesystem::path& path, const std::function<bool()>& go_on);

/// What a worker says whose key the trainer refuses.
Error key_refusal(const Url& url);

/// The header that shows a key; empty if it is empty.
HttpHeaders key_header(const std::string& key);

}  // namespace carnot
