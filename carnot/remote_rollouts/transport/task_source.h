// remote_rollouts/transport/task_source.h -- a worker's side: the trainer's announcement, its files, tasks on lease,
// results.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/remote_rollouts/transport/address.h"
#include "carnot/remote_rollouts/transport/broker.h"
#include "carnot/remote_rollouts/transport/messages.h"
#include "carnot/remote_rollouts/transport/peer_files.h"
#include "carnot/remote_rollouts/transport/served_files.h"
#include "carnot/remote_rollouts/transport/task_board.h"

namespace carnot {

/// A task that this worker has for the time being.
struct LeasedTask {
  Lease lease;
  WorkerTask task{};
};

class TaskSource {
 public:
  /// `key`: of the trainer's HTTP server. Waits for the broker; null if `go_on` ended that.
  static Result<std::unique_ptr<TaskSource>> connect(const BrokerAddress& address, const BrokerOptions& broker,
                                                     const std::string& key, const GoOn& go_on);

  /// The trainer as it is announced; empty if there is none, or the broker is away.
  Result<std::optional<Announcement>> trainer();

  /// From now on this worker serves to others what it is asked to keep.
  Status serve_to_peers(const PeerServerOptions& options);
  /// To be called now and then, a few times a minute.
  void keep_announced();

  Result<WorkerAttempt> fetch(const Announcement& trainer, const WorkerFile& file, const std::filesystem::path& path,
                              const GoOn& go_on);
  /// The same from another worker that has the file, if there is one; else from the trainer. Where both are busy it
  /// asks again until `go_on` ends that. A worker that sends something else is reported in the log and asked no
  /// more.
  Result<WorkerAttempt> fetch_from_any(const Announcement& trainer, const WorkerFile& file,
                                       const std::filesystem::path& path, const GoOn& go_on);
  /// Serves this file, which has been fetched, to other workers, if this worker does so, instead of the last one of
  /// that kind; `path` is then gone.
  Status keep(const std::string& kind, const WorkerFile& file, const std::filesystem::path& path);

  /// A task of this run, if one comes within `patience`. Tasks of runs that have ended are taken off the queue.
  Result<std::optional<LeasedTask>> next_task(const std::string& run, std::chrono::milliseconds patience);

  /// Done where the trainer has taken the result or needs it no more. An error where it refuses it.
  Result<WorkerAttempt> hand_in(const Announcement& trainer, const WorkerTask& task, const WorkerResult& result);

 private:
  TaskSource(BrokerAddress address, std::string key, std::unique_ptr<Broker> broker)
      : address_(std::move(address)), key_(std::move(key)), broker_(std::move(broker)) {}

  /// True if a worker had it.
  bool fetch_from_peers(const WorkerFile& file, const std::filesystem::path& path, const GoOn& go_on);

  BrokerAddress address_;
  std::string key_;
  std::unique_ptr<Broker> broker_;
  std::set<std::string> distrusted_{};       ///< addresses of workers that sent something else
  std::unique_ptr<PeerFiles> peer_files_{};  ///< after the broker
};

}  // namespace carnot
