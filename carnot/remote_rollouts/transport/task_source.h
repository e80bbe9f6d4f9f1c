// remote_rollouts/transport/task_source.h -- a worker's side: the trainer's announcement, its files, tasks on lease,
// results, and files that it passes on to other workers.
//
// A file that a worker serves is announced in the key-value store under its SHA-256 and an id of the worker, for a
// minute at a time: a worker that dies is forgotten.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/remote_rollouts/transport/address.h"
#include "carnot/remote_rollouts/transport/broker.h"
#include "carnot/remote_rollouts/transport/messages.h"
#include "carnot/remote_rollouts/transport/served_files.h"
#include "carnot/remote_rollouts/transport/task_board.h"

namespace carnot {

struct PeerServerOptions {
  std::string host{};         ///< that the HTTP server listens on
  int port = 0;               ///< 0: any that is free
  std::string url{};          ///< of that server, as others reach it; empty: this machine's name, or a loopback address
  std::string certificate{};  ///< PEM file; where set, the server speaks TLS
  std::string private_key{};  ///< PEM file of its key
  std::string key{};          ///< that requests need: the trainer's
};

/// Reads HOST or HOST:PORT. `where` is before messages.
Result<PeerServerOptions> parse_serving_address(std::string_view text, const std::string& where);

class TaskSource {
 public:
  /// `key`: of the trainer's HTTP server. Waits for the broker; null if `go_on` ended that.
  static Result<std::unique_ptr<TaskSource>> connect(const BrokerAddress& address, const BrokerOptions& broker,
                                                     const std::string& key, const GoOn& go_on);

  ~TaskSource();
  TaskSource(const TaskSource&) = delete;
  TaskSource& operator=(const TaskSource&) = delete;

  /// The trainer as it is announced; empty if there is none, or the broker is away.
  Result<std::optional<Announcement>> trainer();

  /// From now on this worker serves to others what keep() gets.
  Status serve_to_peers(const PeerServerOptions& options);
  /// To be called now and then, a few times a minute.
  void keep_announced();

  Result<WorkerAttempt> fetch(const Announcement& trainer, const WorkerFile& file, const std::filesystem::path& path,
                              const GoOn& go_on);
  /// The same from another worker that has the file, if there is one; else from the trainer. Where both are busy it
  /// asks again until `go_on` ends that. A worker that sends something else is named in a warning and not asked
  /// again.
  Result<WorkerAttempt> fetch_from_any(const Announcement& trainer, const WorkerFile& file,
                                       const std::filesystem::path& path, const GoOn& go_on);
  /// Serves this file, which has been fetched, to other workers, if this worker does so, instead of the last one of
  /// that kind; `path` is then gone.
  Status keep(const std::string& kind, const WorkerFile& file, const std::filesystem::path& path);

  /// The trainer's next task, on lease; empty if none is free for half a second, or the trainer does not answer.
  Result<std::optional<WorkerTask>> next_task(const Announcement& trainer);
  /// The lease begins again. False if the trainer does not answer.
  bool extend(const Announcement& trainer, const WorkerTask& task);
  /// Another worker may have the task at once.
  void give_back(const Announcement& trainer, const WorkerTask& task);

  /// Done where the trainer has taken the result or needs it no more. An error where it refuses it.
  Result<WorkerAttempt> hand_in(const Announcement& trainer, const WorkerTask& task, const WorkerResult& result);

 private:
  class PeerFiles;
  TaskSource(BrokerAddress address, std::string key, std::unique_ptr<Broker> broker);

  /// What the trainer answers. Status 0 if it does not, and the body says why. An error where it refuses the key.
  Result<HttpAnswer> post(const Announcement& trainer, const std::string& path, std::string body,
                          std::chrono::milliseconds time) const;
  /// True if a worker had it.
  bool fetch_from_peers(const WorkerFile& file, const std::filesystem::path& path, const GoOn& go_on);

  BrokerAddress address_;
  std::string key_;
  std::string worker_ = random_hexadecimal(16);  ///< as leases name it
  std::unique_ptr<Broker> broker_;
  std::set<std::string> distrusted_{};       ///< addresses of workers that sent something else
  std::unique_ptr<PeerFiles> peer_files_{};  ///< after the broker
};

}  // namespace carnot
