// Asynchronous mode (rollout.max_staleness): equal to the synchronous run if workers wait for each step's weights, and
// a run that is stopped and resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/rollout/rollout_bytes.h"
#include "carnot/remote_rollouts/trainer_copy.h"
#include "carnot/remote_rollouts/transport/task_source.h"
#include "testing/paths.h"
#include "tests/remote_rollouts/small_training.h"

namespace carnot::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

const GoOn kAlways = [] { return true; };

/// A worker, one task after the other, that waits for the weights of the task's own step before it begins.
class PatientWorker {
 public:
  PatientWorker(TaskSource& source, std::int64_t updates_a_step) : source_(source), updates_(updates_a_step) {}

  /// Until the trainer has ended. Returns the tasks that came before their step began.
  int work(Background& trainer) {
    while (trainer.is_running()) {
      if (!is_there()) continue;
      const auto leased = source_.next_task(trainer_);
      if (!leased || !*leased) continue;
      const WorkerTask& task = **leased;
      ahead_ += task.version < task.step * updates_ ? 1 : 0;
      while (trainer_.version < task.step * updates_ && trainer.is_running()) {
        source_.extend(trainer_, task);
        std::this_thread::sleep_for(milliseconds(10));
        (void)is_there();
      }
      if (!copy_->take_weights(source_, trainer_, kAlways)->done) continue;
      EXPECT_TRUE(copy_->can_roll_out(task));
      const Rollout rollout = copy_->roll_out(task, {});
      const WorkerResult result{.worker = "patient", .kernels = trainer_.kernels, .rollout = bytes_of_rollout(rollout)};
      const auto handed_in = source_.hand_in(trainer_, task, result);
      EXPECT_TRUE(handed_in.ok()) << handed_in.error().message;
    }
    return ahead_;
  }

 private:
  /// With weights that are announced.
  bool is_there() {
    const auto now = source_.trainer();
    if (!now || !*now || !(*now)->open || (*now)->version < 0) return false;
    trainer_ = **now;
    std::string why_not;
    if (!copy_) copy_ = TrainerCopy::make(source_, trainer_, 1, kAlways, why_not).value();
    return copy_ != nullptr;
  }

  TaskSource& source_;
  std::int64_t updates_;
  Announcement trainer_{};
  std::unique_ptr<TrainerCopy> copy_{};
  int ahead_ = 0;
};

class Asynchronous : public SmallTraining {};

TEST_F(Asynchronous, TrainingWithWorkersThatWaitForEachStepsWeightsEqualsSynchronousTraining) {
  ASSERT_EQ(run_carnot(train("straight", {"objective.importance_cap=5"})).exit, 0);
  const NatsServer server(scratch_);
  auto trainer = background(train("with", {"rollout.workers=" + server.address(), "rollout.max_staleness=2"}));
  const auto address = parse_broker_address(server.address(), "test").value();
  const auto source = TaskSource::connect(address, {.url = address.server, .name = "worker"}, "", kAlways).value();
  EXPECT_GT(PatientWorker(*source, 2).work(trainer), 10) << "tasks are handed out ahead";
  EXPECT_EQ(trainer.wait(), 0) << trainer.written();
  expect_same_run("with", "straight");
  for (const double staleness : metric("with", "async/staleness/max")) EXPECT_EQ(staleness, 0);
  for (const double idle : metric("with", "timing_s/trainer_idle")) EXPECT_GT(idle, 0);
  const std::string manual = *read_file(source_path("docs/metrics.md"));
  for (const std::string name : {"async/staleness/mean", "async/staleness/max", "async/tasks_again",
                                 "async/weight_swaps", "timing_s/trainer_idle", "timing_s/worker_idle"}) {
    EXPECT_EQ(metric("with", name).size(), 6u) << name;
    EXPECT_THAT(manual, HasSubstr("`" + name + "`"));
  }
}

TEST_F(Asynchronous, StoppedTrainingContinuesWhereItWas) {
  const NatsServer server(scratch_);
  const auto worker = background({"worker", server.address()});
  const auto words = train("stopped", {"rollout.workers=" + server.address(), "rollout.max_staleness=3",
                                       "rollout.in_flight_updates=true", "resume=auto"});
  auto first = background(words);
  while (!std::filesystem::exists(checkpoint("stopped", 2)) && first.is_running())
    std::this_thread::sleep_for(milliseconds(5));
  first.signal(SIGINT);
  const int stopped = first.wait();  // 0: it was faster
  EXPECT_TRUE(stopped == 130 || stopped == 0) << first.written();
  auto second = background(words);
  EXPECT_EQ(second.wait(), 0) << second.written();
  EXPECT_EQ(metric("stopped", "step"), std::vector<double>({1, 2, 3, 4, 5, 6}));
  for (const double staleness : metric("stopped", "async/staleness/max")) EXPECT_LE(staleness, 3);
}

TEST_F(Asynchronous, TrainingWithoutWorkersIsRefused) {
  const auto refused = run_carnot(train("r", {"rollout.max_staleness=1"}));
  EXPECT_EQ(refused.exit, 1);
  EXPECT_THAT(refused.err, HasSubstr("rollout.max_staleness: in one process rollouts and updates take turns"));
}

}  // namespace
}  // namespace carnot::testing
