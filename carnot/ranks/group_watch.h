// ranks/group_watch.h -- a thread that shows the group that this rank lives, and looks after its neighbour.
//
// Through the group's store: each rank counts up its own number, and the next one sees whether it moves. So a rank
// costs the store three small requests a beat, however large the group is. Who finds a rank still writes down which
// one; the first such sentence is the group's verdict, and all ranks give the same one.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace carnot {

/// All times are of this kind.
using WatchTime = std::chrono::milliseconds;

struct GroupWatchOptions {
  int rank = 0;
  std::vector<std::string> names{};  ///< of the ranks, for the verdict
  std::string store_name{};          ///< where the store is, and who serves it
  bool tells_of_store = true;        ///< this rank reports a lost store: one on each machine does
  WatchTime beat{500};
  WatchTime lost_after{10'000};  ///< a rank that shows no sign for so long is lost
};

class GroupWatch {
 public:
  /// Begins to beat. `store` is the watch's own connection: nothing else may wait on it.
  GroupWatch(c10::intrusive_ptr<c10d::Store> store, GroupWatchOptions options);
  ~GroupWatch();
  GroupWatch(const GroupWatch&) = delete;
  GroupWatch& operator=(const GroupWatch&) = delete;

  /// Says what this rank does with all others now, for the verdict on a rank that ends in it or does not come to it.
  void enter(const std::string& what);

  /// Why the group is lost; none while it is not known to be.
  std::optional<std::string> verdict();

  /// Whether this rank is the one that reports the verdict to the user.
  bool is_to_tell();

  /// The verdict after a connection to some rank broke while this one did `what`: waits a few beats until a rank
  /// finds out which one it was, and gives `reason` if none does.
  std::string verdict_after(const std::string& what, const std::string& reason);

  /// After so long a wait for the others: a verdict on a rank that lives, but is not where this one is; empty if all
  /// are.
  std::optional<std::string> verdict_on_absent(WatchTime waited);

  /// Makes this the verdict, on all ranks, unless there is one.
  void fail(const std::string& verdict);

  void ask_to_stop() { asks_to_stop_ = true; }
  bool was_asked_to_stop() const { return others_ask_to_stop_; }

  /// No beats any more, which the others take for an end unless they stop, too. False if the thread still waits for
  /// a store that does not answer: then the watch must not be destroyed.
  bool stop();

  WatchTime beat_time() const { return options_.beat; }

 private:
  void run();
  void beat();
  void look_after(int rank);
  void find_silent_rank(const std::string& reason);
  void find_absent_rank(WatchTime waited);
  std::string sign_of(int rank);
  /// Of all ranks: in two requests, since all ranks may ask at once.
  std::vector<std::string> signs();
  std::string lost_sentence(int rank, WatchTime silent, const std::string& sign) const;
  void wake(std::unique_lock<std::mutex>& lock, WatchTime longest);
  void publish(const std::string& verdict);
  void settle(const std::string& verdict, bool is_to_tell);

  c10::intrusive_ptr<c10d::Store> store_;
  GroupWatchOptions options_;
  std::int64_t beats_ = 0;
  std::string neighbour_sign_{};
  std::chrono::steady_clock::time_point neighbour_moved_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_, as far as the empty line.
  std::string doing_{};
  std::int64_t entered_ = 0;  ///< what this rank has come to with all others, counted
  std::optional<std::string> verdict_{};
  bool is_to_tell_ = false;
  std::chrono::steady_clock::time_point last_beat_;
  bool ends_ = false, ended_ = false;
  std::optional<std::string> to_publish_{};  ///< requests to the thread
  std::optional<std::string> broken_{};
  std::optional<WatchTime> waited_{};

  std::atomic<bool> asks_to_stop_ = false, others_ask_to_stop_ = false;
  std::thread thread_;
};

}  // namespace carnot
