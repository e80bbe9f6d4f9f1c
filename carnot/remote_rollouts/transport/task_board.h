// remote_rollouts/transport/task_board.h -- the trainer's side: tasks are handed out through the broker, files are
// served and results taken over HTTP.
//
// A task is leased to one worker after the other until its result is there, so it may be computed twice. The first
// result of a task counts, further ones are dropped: draws are keyed, so with the same weights they are equal. Results
// are taken at any time from when a task is handed out, also while no one waits for them.
#pragma once

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
  /// Listens, and clears what an earlier trainer of this name left in the broker. Waits for the broker where it is
  /// away. Null if `go_on` ended that.
  static Result<std::unique_ptr<TaskBoard>> open(const TaskBoardOptions& options, const GoOn& go_on);

  /// Tells the workers, as far as the broker is there, that this trainer has ended; unless another one is announced, or
  /// an exception ends it (a lost rank, a bug): workers then wait as for a trainer that was killed.
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
  /// Looks at a result on one of the server's threads, one at a time; what it refuses is as if it had not come, and its
  /// worker learns why.
  using Accept = std::function<Result<Verdict>(const WorkerTask& task, const WorkerResult& result)>;
  /// REQUIRES: before the first tasks.
  void set_accept(Accept accept) { accept_ = std::move(accept); }

  /// Hands out tasks, none of which is out. False if `go_on` ended it.
  Result<bool> hand_out(const std::vector<WorkerTask>& tasks, const GoOn& go_on);

  /// Returns once each of these has a result that was accepted, and forgets them. False if `go_on` ended it: then
  /// all tasks are forgotten. Fails if another trainer has taken this one's place, or the broker refuses to continue.
  /// REQUIRES: they are handed out.
  Result<bool> wait_for(const std::vector<WorkerTask>& tasks, const GoOn& go_on,
                        const std::function<void(std::size_t done)>& on_progress);

 private:
  struct Entry {
    WorkerTask task{};
    bool in_queue = false;
    bool done = false;
    std::int64_t wait = 0;  ///< the last one that it was among
  };

  TaskBoard(const TaskBoardOptions& options, std::unique_ptr<Broker> broker);

  Status listen();
  /// The trainer that the broker tells of; empty if it tells of none that can be read.
  Result<Reached<std::optional<Announcement>>> announced();
  /// Whether `other` has taken this trainer's place.
  bool is_later(const Announcement& other) const;
  HttpReply answer(const HttpCall& call);
  HttpReply take_result(const std::string& path, const std::string& body);
  /// What is said of a worker next to its name.
  std::string note_of(const WorkerResult& result) const;
  /// Tasks without a result that are not in the queue, those of earlier steps first.
  std::vector<WorkerTask> missing_in_queue();
  /// Puts them into the queue.
  Result<bool> fill_queue(const GoOn& go_on);
  /// Makes good what the broker has lost. Fails if a later trainer is announced.
  Status look_after();
  /// Tasks without a result.
  std::size_t num_unfinished();
  /// From now on they count as not in the queue.
  void lose_queue();
  /// From now on num_done_ counts those of these that have their result. REQUIRES: they are handed out.
  void begin_wait(const std::vector<WorkerTask>& tasks);
  void forget(const std::vector<WorkerTask>& tasks);
  /// Takes all tasks back.
  void close_queue();

  TaskBoardOptions options_;
  std::unique_ptr<Broker> broker_;
  Announcement announcement_;
  ServedFiles files_;
  std::mutex mutex_{};  ///< of what follows, as far as the server's threads use it
  std::condition_variable result_came_{};
  Accept accept_{};
  std::map<std::string, Entry> entries_{};  ///< tasks that are handed out, by key
  std::set<std::string> workers_{};         ///< that have sent results
  bool was_asked_ = false;                  ///< by any worker
  bool is_announced_ = false;
  std::int64_t waits_ = 0;    ///< so far
  std::size_t num_done_ = 0;  ///< of the tasks of the last one
  bool may_miss_ = false;     ///< tasks without a result may be missing in the queue
  int times_filled_ = 0;
  bool looked_short_ = false;  ///< the queue had fewer messages than there are tasks, when last looked at
  std::unique_ptr<HttpServer> server_;
};

}  // namespace carnot
