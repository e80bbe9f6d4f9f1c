// plane/task_source.h -- a worker's side: the trainer's announcement, its files, tasks on lease, results.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "carnot/base/result.h"
#include "carnot/broker/broker.h"
#include "carnot/plane/address.h"
#include "carnot/plane/messages.h"
#include "carnot/plane/served_files.h"
#include "carnot/plane/task_board.h"

namespace carnot {

/// A task that this worker has for the time being.
struct LeasedTask {
  Lease lease;
  PlaneTask task{};
};

class TaskSource {
 public:
  /// `key`: of the trainer's HTTP server. Waits for the broker; null where `go_on` ended that.
  static Result<std::unique_ptr<TaskSource>> connect(const PlaneAddress& address, const BrokerOptions& broker,
                                                     const std::string& key, const GoOn& go_on);

  /// The trainer as it is announced; none where there is none, or the broker is away.
  Result<std::optional<Announcement>> trainer();

  Result<PlaneAttempt> fetch(const Announcement& trainer, const PlaneFile& file, const std::filesystem::path& path,
                             const GoOn& go_on);

  /// A task of this run, if one comes within `patience`. Tasks of runs that have ended are taken off the queue.
  Result<std::optional<LeasedTask>> next_task(const std::string& run, std::chrono::milliseconds patience);

  /// Done where the trainer has taken the result or needs it no more. An error where it refuses it.
  Result<PlaneAttempt> hand_in(const Announcement& trainer, const PlaneTask& task, const PlaneResult& result);

 private:
  TaskSource(PlaneAddress address, std::string key, std::unique_ptr<Broker> broker)
      : address_(std::move(address)), key_(std::move(key)), broker_(std::move(broker)) {}

  PlaneAddress address_;
  std::string key_;
  std::unique_ptr<Broker> broker_;
};

}  // namespace carnot
