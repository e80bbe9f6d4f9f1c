// remote_rollouts/transport/task_board.h -- the trainer's side: announces the trainer through the broker, and hands out
// tasks, serves files and takes results over HTTP.
//
//   GET  /files/SHA256               a file (served_files.h)
//   POST /tasks/RUN/WORKER           the next task, on lease: its JSON; 503 if none is free for half a second
//   POST /leases/RUN/TASK/WORKER     the lease begins again
//   POST /returns/RUN/TASK/WORKER    the worker gives the task back
//   POST /results/RUN/TASK           a result
//
// A task is leased to one worker after the other until its result is there, so it may be computed twice. The first
// result of a task counts, further ones are dropped: draws are keyed, so with the same weights they are equal. Tasks
// are leased and results taken at any time from when a task is handed out, also while no one waits for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/http/server.h"
#include "carnot/remote_rollouts/transport/address.h"
#include "carnot/remote_rollouts/transport/messages.h"
#include "carnot/remote_rollouts/transport/served_files.h"

namespace carnot {

struct TaskBoardOptions {
  BrokerAddress address{};
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
  int most_uploads = 0;              ///< of weights at a time; 0: any number
  bool takes_other_kernels = false;  ///< results of workers that compute with others
};

/// Nothing listens beyond loopback without a key.
Status check_listening(const TaskBoardOptions& options);

/// Asked several times a second; false ends what waits.
using GoOn = std::function<bool()>;

class TaskBoard {
 public:
  /// Listens. Waits for the broker where it is away. Null if `go_on` ended that.
  static Result<std::unique_ptr<TaskBoard>> open(const TaskBoardOptions& options, const GoOn& go_on);

  /// Announces that this trainer has ended, if the broker can be reached; not if another one is announced, or an
  /// exception ends it (a lost rank, a bug): workers then wait as for a trainer that was killed.
  ~TaskBoard();
  TaskBoard(const TaskBoard&) = delete;
  TaskBoard& operator=(const TaskBoard&) = delete;

  ServedFiles& files() { return files_; }
  const std::string& run() const { return announcement_.run; }

  void set_setup(const WorkerFile& setup, const std::optional<WorkerFile>& base);
  /// Serves these weights instead of the last ones.
  void set_weights(std::int64_t version, const WorkerFile& weights);
  const WorkerFile& weights() const { return announcement_.weights; }
  std::int64_t version() const { return announcement_.version; }

  /// Announces the trainer as it is now. False if `go_on` ended it.
  Result<bool> announce(const GoOn& go_on);

  /// What becomes of a result. Again: its task is handed out once more, with the weights that are announced then.
  enum class Verdict { Taken, Again };
  /// Looks at a result on one of the server's threads, one at a time. A result that it refuses does not count, and its
  /// worker gets the reason.
  using Accept = std::function<Result<Verdict>(const WorkerTask& task, const WorkerResult& result)>;
  /// REQUIRES: before the first tasks.
  void set_accept(Accept accept) { accept_ = std::move(accept); }

  /// Workers may take these tasks from now on, earlier steps first. REQUIRES: none of them is handed out already.
  void hand_out(const std::vector<WorkerTask>& tasks);

  /// Returns once each of these has a result that was accepted, and forgets them. False if `go_on` ended it: then
  /// all tasks are forgotten. Fails if another trainer has taken this one's place, or the broker refuses to continue.
  /// REQUIRES: they are handed out.
  Result<bool> wait_for(const std::vector<WorkerTask>& tasks, const GoOn& go_on,
                        const std::function<void(std::size_t done)>& on_progress);

 private:
  using Clock = std::chrono::steady_clock;

  struct Entry {
    WorkerTask task{};
    std::string worker{};              ///< that leased it last
    Clock::time_point leased_until{};  ///< from then on another worker may have it
    bool done = false;
    std::int64_t wait = 0;  ///< the last one that it was among
  };

  TaskBoard(const TaskBoardOptions& options, std::unique_ptr<Broker> broker);

  Status listen();
  /// The trainer that the broker tells of; empty if it tells of none that can be read.
  Result<Reached<std::optional<Announcement>>> announced();
  /// Whether `other` has taken this trainer's place.
  bool is_later(const Announcement& other) const;
  HttpReply answer(const HttpCall& call, const HttpConnection& connection);
  HttpReply lease_next(const std::string& worker, const HttpConnection& connection);
  /// A lease that is this worker's ends at `until`.
  HttpReply set_lease(const std::string& task, const std::string& worker, Clock::time_point until);
  HttpReply take_result(const std::string& key, const std::string& body);
  /// The task without a result or a lease that is first in line; null if there is none.
  Entry* next_free();
  /// What is said of a worker next to its name.
  std::string note_of(const WorkerResult& result) const;
  /// Announces the trainer again where the broker has lost that. Fails if a later trainer is announced.
  Status look_after();
  /// From now on num_done_ counts those of these that have their result. REQUIRES: they are handed out.
  void begin_wait(const std::vector<WorkerTask>& tasks);

  TaskBoardOptions options_;
  std::unique_ptr<Broker> broker_;
  Announcement announcement_;
  ServedFiles files_;
  std::mutex mutex_{};  ///< of what follows, as far as the server's threads use it
  std::condition_variable result_came_{}, task_came_{};
  Accept accept_{};
  std::map<std::string, Entry> entries_{};  ///< tasks that are handed out, by key
  std::set<std::string> workers_{};         ///< that have sent results
  bool was_asked_ = false;                  ///< by any worker
  bool is_announced_ = false;
  std::int64_t waits_ = 0;    ///< so far
  std::size_t num_done_ = 0;  ///< of the tasks of the last one
  std::unique_ptr<HttpServer> server_;
};

}  // namespace carnot
