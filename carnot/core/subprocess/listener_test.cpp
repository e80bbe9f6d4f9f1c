#include "carnot/core/subprocess/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/stopwatch.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Lines = std::vector<std::string>;

class Listeners : public ::testing::Test {
 protected:
  Listeners() : folder_(fs::temp_directory_path() / ("carnot_listener_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    before_ = set_log_sink([this](LogLevel, const std::string& message) {
      const std::lock_guard lock(mutex_);
      log_.push_back(message);
    });
  }
  ~Listeners() override {
    set_log_sink(before_);
    fs::remove_all(folder_);
  }

  /// A shell script that runs in the test's folder.
  std::unique_ptr<Listener> listen(const std::string& script, ListenerOptions options = {}) {
    options.name = "tracker";
    options.program = {.command = {"sh", "-c", script}, .folder = folder_};
    options.pause_seconds = 0;
    auto listener =
        Listener::start(options, {.greeting = [](int start) { return "start " + std::to_string(start); },
                                  .dropped = [](std::int64_t lines) { return "dropped " + std::to_string(lines); }});
    EXPECT_TRUE(listener.ok()) << (listener.ok() ? "" : listener.error().message);
    return std::move(listener).value();
  }

  Lines heard(const std::string& name = "heard") const {
    Lines lines;
    const auto text = read_file(folder_ / name);
    if (text)
      for (const std::string_view line : split_lines(*text)) lines.emplace_back(line);
    return lines;
  }

  void wait_for(const std::string& name) const {
    while (!fs::exists(folder_ / name)) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  Lines log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  fs::path folder_;
  LogSink before_;
  mutable std::mutex mutex_{};
  Lines log_{};
};

TEST_F(Listeners, GetEverythingInOrder) {
  const auto listener = listen("cat > heard");
  listener->introduce("stage");
  Lines expected{"start 1", "stage"};
  for (int i = 0; i < 2000; ++i) {
    expected.push_back(std::string(static_cast<std::size_t>(i % 300), 'x') + std::to_string(i));
    listener->tell(expected.back());
  }
  expected.push_back("end");
  const ListenerEnd end = listener->finish("end");
  EXPECT_TRUE(end.in_time);
  EXPECT_EQ(end.dropped, 0);
  EXPECT_EQ(end.starts, 1);
  EXPECT_EQ(heard(), expected);
  EXPECT_THAT(log(), ElementsAre());
}

TEST_F(Listeners, ThatReadNothingCostDroppedLinesAndNoTime) {
  // The pipe takes 64 KiB, the queue 100 kB; the rest of 1 MB does not fit.
  const auto listener = listen("exec sleep 1000", {.queue_bytes = 100'000, .finish_seconds = 0.3});
  for (int i = 0; i < 1000; ++i) listener->tell(std::string(1000, 'x'));
  const ListenerEnd end = listener->finish("end");
  EXPECT_FALSE(end.in_time);
  EXPECT_GT(end.dropped, 800);
  EXPECT_EQ(end.starts, 1);
  EXPECT_THAT(log(), Contains(HasSubstr("tracker does not keep up")).Times(1));
  EXPECT_THAT(log(), Contains(HasSubstr("did not finish in time and was killed")).Times(1));
  EXPECT_THAT(
      log(), Contains("tracker was not sent " + std::to_string(end.dropped) + " lines; the run folder has everything"));
}

TEST_F(Listeners, ThatAreSlowLearnHowManyLinesAreMissing) {
  const auto listener = listen("while [ ! -e go ]; do sleep 0.01; done; cat > heard", {.queue_bytes = 100'000});
  for (int i = 0; i < 1000; ++i) listener->tell(std::string(1000, 'x'));
  ASSERT_TRUE(write_file_atomically(folder_ / "go", "").ok());
  const ListenerEnd end = listener->finish("end");
  EXPECT_TRUE(end.in_time);
  EXPECT_GT(end.dropped, 0);
  std::int64_t received = 0, missing = 0;
  for (const std::string& line : heard()) {
    if (line.starts_with("x")) ++received;
    if (line.starts_with("dropped ")) missing += std::stoll(line.substr(8));
  }
  EXPECT_EQ(missing, end.dropped);
  EXPECT_EQ(received + missing, 1000);
  EXPECT_EQ(heard().back(), "end");
}

TEST_F(Listeners, ThatDieAreStartedAgainAndIntroduced) {
  // The first process dies of its third line; the second one writes down what it hears.
  const auto listener = listen(
      "if [ -e dead ]; then touch second; cat > heard; else read a; read b; read c; echo 'a bug' >&2; touch dead; exit "
      "3; fi");
  listener->introduce("stage 1");
  listener->tell("one");
  wait_for("second");
  listener->tell("two");
  listener->introduce("stage 2");
  const ListenerEnd end = listener->finish("end");
  EXPECT_TRUE(end.in_time);
  EXPECT_EQ(end.starts, 2);
  EXPECT_THAT(heard(), ElementsAre("start 2", "stage 1", "two", "stage 2", "end"));
  EXPECT_THAT(log(), Contains(ContainsRegex("tracker \\(process [0-9]+\\) exited with status 3; its last words: a bug; "
                                            "it is started again"))
                         .Times(1));
}

TEST_F(Listeners, ThatKeepDyingAreLeftAlone) {
  const auto listener = listen("echo x >> starts; exit 0");
  const auto left_alone = Contains(HasSubstr("it was started 3 times and is not started again"));
  while (!::testing::Matches(left_alone)(log())) {
    listener->tell("line");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const ListenerEnd end = listener->finish("end");
  EXPECT_FALSE(end.in_time);
  EXPECT_EQ(end.starts, 3);
  EXPECT_THAT(heard("starts"), ElementsAre("x", "x", "x"));
  EXPECT_THAT(log(), left_alone.Times(1));
}

TEST_F(Listeners, ThatAreKilledWithTheirChildrenAreStartedAgain) {
  const auto listener =
      listen("echo $$ > first.tmp; [ -e first ] && { touch second; exec cat > heard; }; mv first.tmp first; cat");
  wait_for("first");
  ::kill(static_cast<pid_t>(std::stol(heard("first").at(0))), SIGKILL);
  wait_for("second");
  listener->tell("line");
  EXPECT_TRUE(listener->finish("end").in_time);
  EXPECT_THAT(heard(), ElementsAre("start 2", "line", "end"));
  EXPECT_THAT(log(), Contains(AllOf(HasSubstr("was killed by signal 9"), HasSubstr("; it is started again"))).Times(1));
}

TEST_F(Listeners, WriteIntoTheLogUpToALimit) {
  const auto listener =
      listen("cat > heard; printf 'a\\033b\\377\\n' >&2; seq 1 100000; echo end >&2", {.logged_lines = 20});
  for (int i = 0; i < 100; ++i) listener->tell("line");
  EXPECT_TRUE(listener->finish("end").in_time);
  EXPECT_EQ(heard().size(), 102u);
  EXPECT_EQ(log().size(), 21u);
  EXPECT_THAT(log().back(), HasSubstr("has written 20 lines; the rest is left out"));
}

TEST_F(Listeners, ThatWriteWithoutEndEndAtTheDeadline) {
  const auto listener = listen("yes", {.finish_seconds = 0.3});
  EXPECT_FALSE(listener->finish("end").in_time);
  EXPECT_THAT(log(), Contains(HasSubstr("did not finish in time and was killed")));
}

TEST_F(Listeners, ThatEndBadlyAfterEverythingAreNotStartedAgain) {
  const auto listener = listen("echo x >> starts; cat > heard; exit 5");
  EXPECT_FALSE(listener->finish("end").in_time);
  EXPECT_THAT(heard(), ElementsAre("start 1", "end"));
  EXPECT_THAT(heard("starts"), ElementsAre("x"));
  EXPECT_THAT(log(), Contains(HasSubstr("exited with status 5")).Times(1));
}

TEST_F(Listeners, ThatAreNotFinishedAreKilled) {
  {
    const auto listener = listen("sleep 1000 & echo $! > child.tmp; mv child.tmp child; wait");
    wait_for("child");
  }
  const auto child = static_cast<pid_t>(std::stol(heard("child").at(0)));
  // It may be about to end, or wait for its new parent to notice.
  const auto is_alive = [&] {
    const auto state = read_file("/proc/" + std::to_string(child) + "/stat");
    return state && state->find(") Z ") == std::string::npos;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (is_alive() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_FALSE(is_alive());
}

TEST(Listener, ThatCannotBeStartedIsAnError) {
  const auto listener =
      Listener::start({.name = "tracker", .program = {.command = {"/nowhere/tracker"}}},
                      {.greeting = [](int) { return ""; }, .dropped = [](std::int64_t) { return ""; }});
  ASSERT_FALSE(listener.ok());
  EXPECT_THAT(listener.error().message, HasSubstr("cannot start \"/nowhere/tracker\""));
}

}  // namespace
}  // namespace carnot
