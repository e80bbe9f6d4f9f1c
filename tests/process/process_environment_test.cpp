// Environments in Python, through the class that their authors derive from: equal rollouts with any number of processes
// and threads, and no fault that becomes a reward.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <thread>

#include "carnot/core/env/environment_boundary.h"
#include "carnot/worlds/entries.h"
#include "testing/prepared_environment.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kPython = std::string(CARNOT_SOURCE_DIR) + "/python/";
const std::string kTests = std::string(CARNOT_SOURCE_DIR) + "/tests/process/";

/// The factory with these settings, prepared.
Result<std::shared_ptr<EnvironmentFactory>> process(const std::vector<std::string>& settings) {
  return testing::prepared(make_process(), settings);
}

std::string script(const std::string& path) { return "command=[python3, " + path + "]"; }

std::string error_of(const std::vector<std::string>& settings) {
  const auto made = process(settings);
  return made ? "" : made.error().message;
}

/// The three items on the list in the opening of python/shopping.py: "buy salt bread milk".
std::vector<std::string> shopping_list(const Opening& opening) {
  std::istringstream words(opening.user);
  std::string buy;
  std::vector<std::string> list(3);
  EXPECT_TRUE(words >> buy >> list[0] >> list[1] >> list[2]) << opening.user;
  EXPECT_EQ(buy, "buy");
  return list;
}

TEST(ProcessEnvironment, OfFifteenLinesCanBePlayed) {
  const auto factory = process({script(kPython + "shopping.py"), "max_turns=5"}).value();
  const auto environment = factory->make(Split::Train, 3);
  const std::vector<std::string> list = shopping_list(environment->open());
  EXPECT_EQ(environment->protocol().max_response_tokens, 1);
  EXPECT_EQ(environment->step("I do not know").text, "no");
  EXPECT_EQ(environment->step(list[1]).text, "bought");
  const Reply again = environment->step(list[1]);
  EXPECT_EQ(again.text, "no");
  EXPECT_EQ(again.reward, 0);
  EXPECT_FALSE(environment->step(" " + list[0]).done);
  const Reply last = environment->step(list[2]);
  EXPECT_EQ(last.reward, 1.0 / 3);
  EXPECT_TRUE(last.done && last.success);
}

TEST(ProcessEnvironment, EndsAtTheLastTurn) {
  const auto factory = process({script(kPython + "shopping.py"), "max_turns=2"}).value();
  const auto environment = factory->make(Split::Train, 3);
  const std::vector<std::string> list = shopping_list(environment->open());
  EXPECT_EQ(environment->protocol().max_turns, 2);
  EXPECT_FALSE(environment->step("?").done);
  const Reply last = environment->step(list[0]);
  EXPECT_TRUE(last.done);
  EXPECT_FALSE(last.success);
  EXPECT_EQ(last.outcome, Outcome::OutOfTurns);
  EXPECT_EQ(last.text, "");
  EXPECT_EQ(last.reward, 1.0 / 3);
}

TEST(ProcessEnvironment, ThatDoesNotStartIsRefusedWithTheReason) {
  EXPECT_THAT(error_of({}), HasSubstr("env.command: names no program"));
  EXPECT_THAT(error_of({"command=[no_such_program]"}), HasSubstr("cannot start \"no_such_program\""));
  EXPECT_THAT(error_of({script("/nowhere.py")}),
              AllOf(HasSubstr("exited with status 2"), HasSubstr("can't open file")));
  EXPECT_THAT(error_of({script(kPython + "shopping.py"), "settings=[size]"}),
              HasSubstr("env.settings: expected key=value, found \"size\""));
  EXPECT_THAT(error_of({script(kPython + "shopping.py"), "settings=[size=4]"}),
              HasSubstr("TypeError: Shopping() takes no arguments"));
  EXPECT_THAT(error_of({"command=[python3, -c, 'import carnot_environment']"}),
              HasSubstr("exited with status 0; a Python script ends with serve(MyEnvironment)"));
  EXPECT_THAT(error_of({"command=[cat]"}), HasSubstr("op: no field of this answer"));
}

std::string transcript(const std::vector<std::string>& settings, int threads) {
  const auto factory = process(settings).value();
  std::vector<RolloutTask> tasks;
  for (int i = 0; i < 6; ++i)
    tasks.push_back({.uid = "task-" + std::to_string(i), .environment = "process", .task_index = i, .make = [=] {
                       return factory->make(Split::Train, i);
                     }});
  testing::RolloutSetting setting = testing::with_budget(4);
  setting.options.environment_threads = threads;
  const Rollout rollout = testing::roll_out_scripted(tasks, setting);
  EXPECT_EQ(rollout.metrics.trajectories, 24);
  return testing::described(rollout);
}

TEST(ProcessEnvironment, RollsOutTheSameWithAnyNumberOfProcessesThreadsAndBatches) {
  const std::string counting = script(kTests + "counting_environment.py");
  const auto one = transcript({counting}, 1);
  EXPECT_EQ(transcript({counting, "processes=3"}, 4), one);
  EXPECT_EQ(transcript({counting, "settings=[batch=true]"}, 4), one);
}

TEST(ProcessEnvironment, OfCoroutinesLetsAllEpisodesWaitAtOnce) {
  const std::string counting = script(kTests + "counting_environment.py");
  EXPECT_EQ(transcript({counting, "settings=[at_once=24]"}, 24), transcript({counting}, 1));
}

TEST(ProcessEnvironment, ClonedAnswersAsReplayed) {
  const std::string counting = script(kTests + "counting_environment.py");
  const auto factory = process({counting, "settings=[clone=true]"}).value();
  const auto first = factory->make(Split::Train, 1);
  first->open();
  first->step("one");
  const auto copy = first->clone(), again = factory->make(Split::Train, 1);
  again->open();
  again->step("one");
  for (const char* said : {"two", "three"}) {
    first->step("something else");
    const Reply expected = again->step(said), cloned = copy->step(said);
    EXPECT_EQ(cloned.text, expected.text);
    EXPECT_EQ(cloned.reward, expected.reward);
    EXPECT_EQ(copy->anchor(), again->anchor());
  }
}

/// What Faulty.right() of tests/process/faulty_environment.py gives.
double right_reward(std::uint64_t seed, int turn, std::size_t said) {
  return (static_cast<double>(seed % 97) + static_cast<double>(said)) * turn;
}

struct Tally {
  int whole = 0, lost = 0, wrong = 0;
};

/// Plays one episode and compares every reward.
void play(const EnvironmentFactory& factory, std::int64_t index, Tally& tally) {
  const auto environment = factory.make(Split::Train, index);
  try {
    const std::string user = environment->open().user;
    const std::uint64_t seed = std::stoull(user.substr(user.find(' ')));
    Reply reply;
    for (int turn = 1; !reply.done; ++turn) {
      const std::string said(static_cast<std::size_t>(index + turn) % 7, 'x');
      reply = environment->step(said);
      check_reply(reply);
      if (reply.outcome == Outcome::InfraFailed || reply.reward != right_reward(seed, turn, said.size())) {
        ++tally.wrong;
        return;
      }
    }
    ++tally.whole;
  } catch (const std::runtime_error&) {
    ++tally.lost;
  }
}

TEST(ProcessEnvironment, OfManyFaultsNoneBecomesARewardAndNoneStopsTheRest) {
  const auto factory =
      process({script(kTests + "faulty_environment.py"), "processes=2", "timeout=0.5", "settings=[share=0.5]"}).value();
  // Every process that dies is started again: a fifth of the episodes, unless all are requested.
  const char* wanted = std::getenv("CARNOT_FAULT_CASES");
  const int episodes = wanted != nullptr && std::string_view(wanted) == "all" ? 2000 : 400;
  constexpr int kThreads = 4;
  std::vector<Tally> tallies(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = t; i < episodes; i += kThreads) play(*factory, i, tallies[t]);
    });
  for (std::thread& thread : threads) thread.join();
  Tally all;
  for (const Tally& one : tallies) {
    all.whole += one.whole;
    all.lost += one.lost;
    all.wrong += one.wrong;
  }
  EXPECT_EQ(all.wrong, 0);
  EXPECT_GE(all.lost, episodes * 2 / 5) << "faults that end an episode";
  EXPECT_GE(all.whole, episodes / 4) << "the others continue, except for those that shared a process";
  EXPECT_EQ(all.whole + all.lost, episodes);
}

}  // namespace
}  // namespace carnot
