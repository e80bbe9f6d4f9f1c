// Harnesses that die, hang, answer garbage or are slow: none yields a reward, none stops the others, and none is left
// running.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "carnot/core/base/log.h"
#include "carnot/core/env/environment_boundary.h"
#include "carnot/worlds/entries.h"
#include "testing/prepared_environment.h"

namespace carnot {
namespace {

constexpr int kThreads = 8;
constexpr const char* kMark = "CARNOT_FAULTY_HARNESS_OF";

/// Whether a harness of this test, or a process that one has started, is running.
bool a_harness_runs() {
  const std::string mark = std::string(kMark) + "=" + std::to_string(::getpid());
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name == std::to_string(::getpid()) || name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string variables((std::istreambuf_iterator<char>(file)), {});
    if (variables.find(mark) != std::string::npos) return true;
  }
  return false;
}

/// Whether one keeps running: a killed process takes a moment to end.
bool a_harness_goes_on() {
  for (int i = 0; i < 300; ++i) {
    if (!a_harness_runs()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return true;
}

class AgentFaults : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv(kMark, std::to_string(::getpid()).c_str(), 1);
    log_ = set_log_sink([](LogLevel, const std::string&) {});  // some write a lot
  }
  void TearDown() override {
    set_log_sink(log_);
    ::unsetenv(kMark);
  }

  /// `kind`: the first argument of tests/agent/faulty_harness.py.
  static std::shared_ptr<EnvironmentFactory> harnesses(const std::string& kind, std::vector<std::string> settings) {
    settings.push_back("command=[python3, -S, " CARNOT_SOURCE_DIR "/tests/agent/faulty_harness.py, " + kind + "]");
    return testing::prepared(make_agent(), settings).value();
  }

  /// Plays the task; counts how the episodes of each kind ended.
  void play(const EnvironmentFactory& factory, std::int64_t index) {
    std::string expected = "lost", fault = "before asking", end, why;
    std::uint64_t seed = 0;
    double said = 0;
    const auto environment = factory.make(Split::Train, index);
    try {
      const Opening opening = environment->open();
      check_opening(opening);
      std::istringstream words(opening.history.empty() ? opening.user : opening.history.at(0).content);
      words >> seed >> expected;
      std::getline(words, fault);
      Reply reply;
      for (std::int64_t turn = 0; !reply.done; ++turn) {
        const std::string response(static_cast<std::size_t>(1 + (index + 2 * turn) % 7), 'x');
        said += static_cast<double>(response.size());
        reply = environment->step(response);
        check_reply(reply);
      }
      const double heard = reply.measures.contains("heard") ? reply.measures.at("heard") : -1;
      const bool as_computed = reply.reward == static_cast<double>(seed % 97) + heard;
      const bool all_heard = expected == "either" ? heard <= said : heard == said;
      end = as_computed && all_heard && reply.outcome == Outcome::Finished ? "right" : "wrong";
    } catch (const std::runtime_error& failure) {
      end = "lost";
      why = failure.what();
    }
    const std::lock_guard lock(mutex_);
    ++ends_[end];
    if (end == "lost") {
      EXPECT_THAT(why, ::testing::HasSubstr(reason_)) << "task " << index << ":" << fault;
    }
    if (end != expected && (expected != "either" || end == "wrong"))
      ADD_FAILURE() << "task " << index << ":" << fault << ": expected " << expected << ", was " << end;
  }

  void play_many(const EnvironmentFactory& factory, int episodes) {
    std::atomic<int> next = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([&] {
        for (int i = next++; i < episodes; i = next++) play(factory, i);
      });
    for (std::thread& thread : threads) thread.join();
  }

  /// Of a thousand, or of a sample unless all are requested.
  static int share_of(int all, int sample) {
    const char* wanted = std::getenv("CARNOT_FAULT_CASES");
    return wanted != nullptr && std::string_view(wanted) == "all" ? all : sample;
  }

  LogSink log_{};
  std::mutex mutex_{};
  std::map<std::string, int> ends_{};   ///< right, lost, wrong
  std::string reason_ = "the harness";  ///< part of every failure's message
};

TEST_F(AgentFaults, NoneBecomesARewardAndNoneStopsTheOthers) {
  const auto factory = harnesses("failing", {"timeout=120", "start_timeout=120"});
  const int episodes = share_of(924, 42);  // 42 faults
  play_many(*factory, episodes);
  EXPECT_EQ(ends_["wrong"], 0);
  EXPECT_GE(ends_["lost"], episodes * 21 / 42);
  EXPECT_GE(ends_["right"], episodes * 19 / 42);
  EXPECT_FALSE(a_harness_goes_on()) << "when an episode ends, its harness and everything it started have ended";
}

TEST_F(AgentFaults, HarnessesThatHangFailAndAreKilled) {
  const auto factory = harnesses("hanging", {"timeout=0.5", "start_timeout=1"});
  reason_ = "the harness did nothing for";
  const int episodes = share_of(200, 10);
  play_many(*factory, episodes);
  EXPECT_EQ(ends_["lost"], episodes);
  EXPECT_FALSE(a_harness_goes_on());
}

}  // namespace
}  // namespace carnot
