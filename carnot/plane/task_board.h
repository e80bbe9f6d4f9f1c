// plane/task_board.h -- the trainer's side: tasks are handed out through the broker, files are served and results taken
// over HTTP.
//
// A task is leased to one worker after the other until its result is there, so it may be computed twice. The first
// result of a task counts, further ones are dropped: draws are keyed, so they are equal.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/http/server.h"
#include "carnot/plane/address.h"
#include "carnot/plane/messages.h"
#include "carnot/plane/served_files.h"

namespace carnot {

struct TaskBoardOptions {
  PlaneAddress address{};
  BrokerOptions broker{};
  std::string host = "127.0.0.1";  ///< that the HTTP server listens on
  int port = 0;                    ///< 0: any that is free
  std::string url{};               ///< of the HTTP server, as workers reach it; empty: host and port
  std::string certificate{};       ///< PEM file; where set, the HTTP server speaks TLS
  std::string private_key{};       ///< PEM file of its key
  std::string key{};               ///< that requests need; empty: none, on a loopback address alone
  std::chrono::milliseconds lease{30'000};
  std::size_t max_result_bytes = std::size_t{1} << 30;
  std::string kernels{};
};

/// Nothing listens beyond loopback without a key.
Status check_listening(const TaskBoardOptions& options);

/// Asked several times a second; false ends what waits.
using GoOn = std::function<bool()>;

class TaskBoard {
 public:
  /// Listens, and clears what an earlier trainer of this name left in the broker. Waits for the broker where it is
  /// away. Null where `go_on` ended that.
  static Result<std::unique_ptr<TaskBoard>> open(const TaskBoardOptions& options, const GoOn& go_on);

  /// Tells the workers, as far as the broker is there, that this trainer has ended; unless another one is announced.
  ~TaskBoard();
  TaskBoard(const TaskBoard&) = delete;
  TaskBoard& operator=(const TaskBoard&) = delete;

  ServedFiles& files() { return files_; }
  const std::string& run() const { return announcement_.run; }

  void set_setup(const PlaneFile& setup, const std::optional<PlaneFile>& base);
  /// Serves these weights instead of the last ones.
  void set_weights(std::int64_t version, const PlaneFile& weights);
  const PlaneFile& weights() const { return announcement_.weights; }
  std::int64_t version() const { return announcement_.version; }

  /// Announces the trainer as it is now. False where `go_on` ended it.
  Result<bool> announce(const GoOn& go_on);

  /// Looks at a result on one of the server's threads, one at a time; what it refuses is as if it had not come, and its
  /// worker is told why.
  using Accept = std::function<Status(std::size_t task, const PlaneResult& result)>;

  /// Hands the tasks out and returns once every one has a result that was accepted. False where `go_on` ended it. Fails
  /// where another trainer has taken this one's place, or the broker refuses to go on.
  Result<bool> collect(const std::vector<PlaneTask>& tasks, const Accept& accept, const GoOn& go_on,
                       const std::function<void(std::size_t done)>& on_progress);

 private:
  struct Round {
    const std::vector<PlaneTask>& tasks;
    const Accept& accept;
    std::vector<bool> done{};
    std::unordered_map<std::string, std::size_t> number_of{};  ///< of a task, by its key
    std::size_t num_done = 0;

    std::optional<std::size_t> find(const std::string& key) const {
      const auto found = number_of.find(key);
      return found == number_of.end() ? std::nullopt : std::optional(found->second);
    }
  };

  TaskBoard(const TaskBoardOptions& options, std::unique_ptr<Broker> broker);

  Status listen();
  /// The trainer that the broker tells of; none where it tells of none that can be read.
  Result<Reached<std::optional<Announcement>>> announced();
  /// Whether `other` has taken this trainer's place.
  bool is_later(const Announcement& other) const;
  HttpReply answer(const HttpCall& call);
  HttpReply take_result(const std::string& path, const std::string& body);
  Result<bool> hand_out(const GoOn& go_on);
  /// Makes good what the broker has lost. Fails where a later trainer is announced.
  Status look_after();
  std::vector<std::size_t> unfinished() const;

  TaskBoardOptions options_;
  std::unique_ptr<Broker> broker_;
  Announcement announcement_;
  ServedFiles files_;
  mutable std::mutex mutex_{};
  std::condition_variable result_came_{};
  Round* round_ = nullptr;           ///< that results are taken for
  std::set<std::string> workers_{};  ///< that have sent results
  bool was_asked_ = false;           ///< by any worker
  bool is_announced_ = false;
  int times_handed_out_ = 0;
  bool looked_short_ = false;  ///< the queue had fewer messages than there are tasks, when last looked at
  std::unique_ptr<HttpServer> server_;
};

}  // namespace carnot
