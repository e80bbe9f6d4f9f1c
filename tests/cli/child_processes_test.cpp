// What happens to an environment's processes when a run ends, however it ends.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include "carnot/core/base/descriptor.h"
#include "program.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ChildProcesses : public ::testing::Test {
 protected:
  ChildProcesses() {
    EXPECT_EQ(::mkfifo(pipe_.c_str(), 0600), 0);
    read_end_ = Descriptor(::open(pipe_.c_str(), O_RDONLY | O_NONBLOCK));
  }

  std::string recipe(const std::string& env) const {
    return scratch_.write("run.yaml", "run_folder: " + scratch_.path("run") + "\nenv: " + env + R"(
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
method: grpo
objective: {kl_coefficient: 0}
rollout: {group_size: 2, max_context_tokens: 64, max_response_tokens: 4}
train: {steps: 1, groups_per_step: 1}
eval: {tasks: 1, before_training: false}
)");
  }

  /// Holds the pipe open, and leaves an orphan that holds it too and leads a session.
  std::string leaving(bool hangs) const {
    return recipe("{name: process, command: [python3, " + source_path("tests/process/daemon_environment.py") +
                  "], settings: ['pipe=" + pipe_ + "', 'hangs=" + (hangs ? "true" : "false") + "']}");
  }

  /// The orphan exists by then.
  bool has_stepped() const { return std::filesystem::exists(pipe_ + ".step"); }

  /// Whether everything that held the pipe ends within a minute.
  bool all_are_gone() const {
    pollfd hang_up{.fd = read_end_.get(), .events = 0, .revents = 0};
    return ::poll(&hang_up, 1, 60'000) == 1;
  }

  ScratchFolder scratch_;
  std::string pipe_ = scratch_.path("pipe");
  Descriptor read_end_{};
};

TEST_F(ChildProcesses, OfAnEnvironmentAreGoneAfterACompleteRun) {
  const auto run = run_carnot({"train", leaving(false)});
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_TRUE(has_stepped());
  EXPECT_TRUE(all_are_gone());
}

TEST_F(ChildProcesses, OfAnEnvironmentThatHangsAreGoneAfterTheRunIsStopped) {
  const auto run = interrupt_carnot({"train", leaving(true)}, [&] { return has_stepped(); }, SIGTERM);
  EXPECT_EQ(run.exit, 130) << run.err;
  EXPECT_TRUE(all_are_gone());
}

TEST_F(ChildProcesses, OfAnEnvironmentThatHangsAreGoneAfterTheRunIsKilled) {
  const auto run = interrupt_carnot({"train", leaving(true)}, [&] { return has_stepped(); }, SIGKILL);
  EXPECT_EQ(run.signal, SIGKILL);
  EXPECT_TRUE(all_are_gone());
}

TEST_F(ChildProcesses, ThatDoNotStartAreNotWaitedForAfterCtrlC) {
  const std::string mark = scratch_.path("started");
  const std::string hanging =
      recipe("{name: process, command: [sh, -c, ': > " + mark + "; exec sleep 1000'], start_timeout: 100}");
  const auto run = interrupt_carnot({"train", hanging}, [&] { return std::filesystem::exists(mark); });
  EXPECT_EQ(run.exit, 130) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("did not answer within")));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path("run/config.yaml")));
}

}  // namespace
}  // namespace carnot::testing
