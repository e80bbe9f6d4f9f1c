#include "carnot/remote_rollouts/transport/staleness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

TEST(StalenessBound, HandsOutWhatAReaLsEquationThreeAllows) {
  RandomStream random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const auto groups = 1 + static_cast<std::int64_t>(random.below(7));
    const auto max = static_cast<std::int64_t>(random.below(5));
    const auto steps = 1 + static_cast<std::int64_t>(random.below(12));
    StalenessBound bound(max, steps);
    for (std::int64_t step = 0; step < steps; ++step) {
      bound.begin(step, 3 * step);
      for (std::int64_t number = 0; number < groups * steps; ++number) {
        // Their trajectory numbers count from 1: floor((N - 1) / B) <= i + eta.
        const bool allowed = number / groups <= step + max;
        EXPECT_EQ(number / groups < bound.handed_out_before(), allowed);
      }
    }
  }
}

TEST(StalenessBound, CountsTheUpdatesThatChangedTheWeights) {
  StalenessBound bound(2, 100);
  bound.begin(10, 40);  // a run that resumes
  bound.begin(11, 42);
  bound.begin(12, 42);  // an update was left out
  bound.begin(13, 44);
  EXPECT_EQ(bound.staleness(13, 44), 0);
  EXPECT_EQ(bound.staleness(13, 42), 1) << "step 12 began with them, too";
  EXPECT_EQ(bound.staleness(13, 43), 1) << "weights in the middle of a step count as those before";
  EXPECT_EQ(bound.staleness(13, 40), 3);
  EXPECT_TRUE(bound.admits(14, 42));
  EXPECT_FALSE(bound.admits(15, 42));
  EXPECT_FALSE(bound.admits(12, 39)) << "of before the run";
}

/// A trainer and workers as they may behave at worst: any of them may take any time, begin with any weights that are at
/// least as new as the task asks, swap them in the middle for any newer ones, and die.
class WorstRun {
 public:
  WorstRun(std::int64_t max_staleness, std::uint64_t seed)
      : max_(max_staleness), random_(seed), bound_(max_staleness, kSteps), done_(kSteps) {}

  /// The largest staleness that a step trained on.
  std::int64_t run() {
    begin();
    while (step_ < kSteps) {
      const std::size_t choice = random_.below(kWorkers + 1);
      if (choice == kWorkers)
        update_if_complete();
      else
        advance(workers_[choice]);
    }
    return largest_;
  }

 private:
  static constexpr std::int64_t kSteps = 30;
  static constexpr std::size_t kGroups = 3, kWorkers = 4;

  struct Task {
    std::int64_t step = 0;
    std::int64_t version = 0;  ///< the oldest that will do
  };
  struct Worker {
    std::optional<Task> task{};
    std::vector<std::int64_t> versions{};  ///< of its turns
  };

  void begin() {
    bound_.begin(step_, version_);
    for (; handed_out_ < bound_.handed_out_before(); ++handed_out_)
      for (std::size_t group = 0; group < kGroups; ++group) queue_.push_back({handed_out_, version_});
  }

  std::int64_t from(std::int64_t oldest) {
    return oldest + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(version_ - oldest + 1)));
  }

  void advance(Worker& worker) {
    if (!worker.task) {
      if (queue_.empty()) return;
      worker.task = queue_.front();
      queue_.pop_front();
      worker.versions = {from(worker.task->version)};
    } else if (random_.below(8) == 0) {  // it dies
      queue_.push_front(*worker.task);
      worker.task.reset();
    } else if (random_.below(2) == 0) {
      worker.versions.push_back(from(worker.versions.back()));
    } else {
      for (const std::int64_t version : worker.versions) EXPECT_TRUE(bound_.admits(worker.task->step, version));
      done_[static_cast<std::size_t>(worker.task->step)].push_back(worker.versions);
      worker.task.reset();
    }
  }

  void update_if_complete() {
    const auto& groups = done_[static_cast<std::size_t>(step_)];
    if (groups.size() < kGroups) return;
    EXPECT_EQ(groups.size(), kGroups) << "each task counts once";
    for (const auto& versions : groups) {
      const std::int64_t staleness = bound_.staleness(step_, *std::ranges::min_element(versions));
      EXPECT_LE(staleness, max_);
      largest_ = std::max(largest_, staleness);
    }
    version_ += static_cast<std::int64_t>(random_.below(3));  // 0: the update was left out
    if (++step_ < kSteps) begin();
  }

  std::int64_t max_;
  RandomStream random_;
  StalenessBound bound_;
  std::int64_t step_ = 0, version_ = 0, handed_out_ = 0, largest_ = 0;
  std::deque<Task> queue_{};
  std::vector<Worker> workers_{kWorkers};
  std::vector<std::vector<std::vector<std::int64_t>>> done_;
};

TEST(StalenessBound, HoldsWhateverWorkersDo) {
  for (std::int64_t max = 0; max < 5; ++max) {
    std::int64_t largest = 0;
    for (std::uint64_t seed = 0; seed < 100; ++seed) largest = std::max(largest, WorstRun(max, seed).run());
    EXPECT_EQ(largest, max) << "and it is reached";
  }
}

}  // namespace
}  // namespace carnot
