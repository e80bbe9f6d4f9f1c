#include "carnot/ranks/process_group.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <thread>

#include "testing/forked_ranks.h"

// The test's own process makes no tensor, so that it has one thread when it forks.
namespace carnot {
namespace {

using ::carnot::testing::fork_ranks;
using ::carnot::testing::ForkedRank;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

/// A killed rank is found by its broken connections; a busy machine may silence another for seconds.
constexpr ProcessGroupOptions kPatient{.join_seconds = 120, .lost_after_seconds = 30, .beat_seconds = 0.1};
/// Quick to find out that a rank is lost.
constexpr ProcessGroupOptions kQuick{.join_seconds = 120, .lost_after_seconds = 3, .beat_seconds = 0.1};

std::unique_ptr<Collectives> joined(const RankSetting& setting, const ProcessGroupOptions& options = {}) {
  auto group = ProcessGroup::join(setting, options);
  return std::move(group).value();
}

/// What `body` returns on every rank, after which the group is left in good order.
std::vector<std::string> reports_of(int size, const std::function<std::string(Collectives&)>& body) {
  std::vector<std::string> reports;
  for (const ForkedRank& rank : fork_ranks(size, [&](const RankSetting& setting) {
         const auto group = joined(setting);
         const std::string report = body(*group);
         group->leave();
         return report;
       }))
    reports.push_back(rank.report);
  return reports;
}

std::string message_when_lost(const std::function<void()>& body) {
  try {
    body();
  } catch (const GroupLost& lost) {
    return lost.what();
  }
  return "not lost";
}

TEST(ProcessGroup, GathersBytesOfAnyLengthByRank) {
  for (const int size : {1, 2, 3, 4}) {
    std::string expected;
    for (int rank = 0; rank < size; ++rank) expected += std::string(rank * 100'000, static_cast<char>(rank)) + "|";
    const auto reports = reports_of(size, [](Collectives& group) {
      std::string all;
      for (const std::string& bytes :
           group.gather(std::string(group.rank() * 100'000, static_cast<char>(group.rank())), "bytes"))
        all += bytes + "|";
      return all;
    });
    ASSERT_EQ(reports.size(), static_cast<std::size_t>(size));
    for (const std::string& report : reports) EXPECT_TRUE(report == expected) << size << " ranks";
  }
}

TEST(ProcessGroup, AgreesOnTheFirstRanksErrorAndOnWhatAnyoneWants) {
  const auto reports = reports_of(3, [](Collectives& group) {
    const int rank = group.rank();
    const Status mine = rank == 0 ? Status(Done{}) : Error{"folder " + std::to_string(rank)};
    const Status all = agree(group, mine, "folders"), none = agree(group, Done{}, "nothing");
    int calls = 0;
    const Status written = on_first_rank(group, "writing", [&]() -> Status {
      ++calls;
      return Error{"disk full"};
    });
    wait_for_all(group, "a pause");
    return (all ? "" : all.error().message.substr(0, 14)) + "/" +
           all.error().message.substr(all.error().message.size() - 10) + (none ? " fine " : " wrong ") +
           written.error().message + " " + std::to_string(calls) + " " +
           from_first_rank(group, "from " + std::to_string(rank), "words") + " " +
           (is_true_anywhere(group, rank == 2, "a wish") ? "yes" : "no") + " " +
           (is_true_anywhere(group, false, "no wish") ? "yes" : "no");
  });
  EXPECT_EQ(reports[0], "rank 1 on host/: folder 1 fine disk full 1 from 0 yes no");
  EXPECT_EQ(reports[1], "rank 1 on host/: folder 1 fine disk full 0 from 0 yes no");
  EXPECT_EQ(reports[2], reports[1]);
}

TEST(ProcessGroup, KeepsWhatRankZeroMadeThereAndSaysWhyItCouldNot) {
  const auto reports = reports_of(2, [](Collectives& group) {
    const auto made = made_on_first_rank(group, "making", [] { return Result<int>(7); });
    const auto failed = made_on_first_rank(group, "making", [] { return Result<int>(Error{"disk full"}); });
    const auto mine = agreed(group, Result<int>(group.rank()), "numbers");
    const auto none = agreed(group, group.rank() == 0 ? Result<int>(1) : Result<int>(Error{"lost"}), "numbers");
    return (made->has_value() ? std::to_string(**made) : "none") + " " + failed.error().message + " " +
           std::to_string(*mine) + " " + none.error().message.substr(0, 6);
  });
  EXPECT_EQ(reports[0], "7 disk full 0 rank 1");
  EXPECT_EQ(reports[1], "none disk full 1 rank 1");
}

TEST(ProcessGroup, OfOneProcessKeepsErrorsAsTheyAre) {
  OneProcess alone;
  EXPECT_EQ(agree(alone, Error{"full"}, "writing").error().message, "full");
  EXPECT_EQ(on_first_rank(alone, "writing", [] { return Status(Error{"full"}); }).error().message, "full");
  const auto body = [](const std::function<bool()>& go_on) { return std::string(go_on() ? "continues" : "stops"); };
  EXPECT_EQ(await_first_rank(alone, body, [] { return true; }, "waiting"), "continues");
}

TEST(ProcessGroup, NotifiesAllRanksThatOneWasAskedToStop) {
  const auto reports = reports_of(2, [](Collectives& group) {
    if (group.rank() == 1) group.ask_to_stop();
    while (!group.was_asked_to_stop()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return std::string("stops");
  });
  EXPECT_THAT(reports, Each("stops"));
}

TEST(ProcessGroup, ExchangesAndGathersSeveralRowsAtATime) {
  const std::vector<std::int64_t> sizes{3, 0, 5};
  const auto reports = reports_of(3, [&](Collectives& group) {
    std::vector<Collectives::Begun> begun;
    const int rank = group.rank();
    for (int i = 0; i < 6; ++i) {
      // Rank r's row begins with 100 r + 10 i, and continues by ones.
      begun.push_back(group.begin_exchange(at::arange(8, at::kFloat) + 100 * rank + 10 * i, sizes, "rows"));
      begun.push_back(group.begin_gather(at::full({sizes[rank]}, 10 * i + rank, at::kBFloat16), sizes, "parts"));
      begun.push_back(group.begin_sum(at::full({2}, i), "sums"));
    }
    const std::int64_t before = rank == 2 ? 3 : 0;
    for (int i = 5; i >= 0; --i) {  // in any order
      const at::Tensor received = begun[3 * i]->result(), gathered = begun[3 * i + 1]->result();
      for (int from = 0; from < 3; ++from) {
        const at::Tensor part = at::arange(before, before + sizes[rank], at::kFloat) + 100 * from + 10 * i;
        if (!at::equal(received[from], part)) return "exchanged " + std::to_string(i);
        const at::Tensor own = gathered[from].slice(0, 0, sizes[from]);
        if (!at::equal(own, at::full({sizes[from]}, 10 * i + from, at::kBFloat16)))
          return "gathered " + std::to_string(i);
      }
      if (!at::equal(begun[3 * i + 2]->result(), at::full({2}, 3 * i))) return "summed " + std::to_string(i);
      if (!begun[3 * i]->has_ended()) return std::string("continues");
    }
    return std::string("right");
  });
  EXPECT_THAT(reports, Each("right"));
}

TEST(ProcessGroup, FindsAKilledRankInWhatHadBegun) {
  const auto ranks = fork_ranks(3, [](const RankSetting& setting) {
    const auto group = joined(setting, kPatient);
    const std::vector<std::int64_t> sizes(3, 1 << 20);
    std::vector<Collectives::Begun> begun;
    for (int i = 0; i < 4; ++i) {
      begun.push_back(group->begin_exchange(at::zeros({3 << 20}), sizes, "gradients of step 3"));
      if (setting.rank == 1 && i == 2) raise(SIGKILL);
    }
    return message_when_lost([&] {
      while (!begun.back()->has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    });
  });
  EXPECT_EQ(ranks[1].signal, SIGKILL);
  for (const int rank : {0, 2}) EXPECT_THAT(ranks[rank].report, StartsWith("rank 1 on host "));
  EXPECT_EQ(ranks[0].report, ranks[2].report);
}

TEST(ProcessGroup, RefusesRanksThatAreAtDifferentPlaces) {
  const auto ranks = fork_ranks(2, [](const RankSetting& setting) {
    const auto group = joined(setting, kQuick);
    group->gather("x", setting.rank == 0 ? "rollouts" : "evaluation");
    return std::string("gathered");
  });
  EXPECT_THAT(ranks[0].report, AllOf(StartsWith("threw: "), HasSubstr("is not at \"rollouts\"")));
}

TEST(ProcessGroup, NamesTheRankThatWasKilledOnAllOthers) {
  for (const int victim : {0, 1}) {
    const auto ranks = fork_ranks(3, [&](const RankSetting& setting) {
      const auto group = joined(setting, kPatient);
      group->gather("x", "rollouts of step 1");
      if (setting.rank == victim) raise(SIGKILL);
      return message_when_lost([&] { group->gather("x", "gradients of step 1"); });
    });
    EXPECT_EQ(ranks[victim].signal, SIGKILL);
    for (int rank = 0; rank < 3; ++rank)
      if (rank != victim) {
        EXPECT_EQ(ranks[rank].signal, 0);
        EXPECT_THAT(ranks[rank].report, StartsWith("rank " + std::to_string(victim) + " on host "));
      }
    if (victim == 1) {
      EXPECT_EQ(ranks[0].report, ranks[2].report);
    }
  }
}

TEST(ProcessGroup, FindsAKilledRankBetweenTwoCollectives) {
  const auto ranks = fork_ranks(2, [](const RankSetting& setting) {
    const auto group = joined(setting, kQuick);
    if (setting.rank == 1) raise(SIGKILL);
    return message_when_lost([&] {
      while (true) {
        group->check();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  });
  EXPECT_THAT(ranks[0].report, AllOf(StartsWith("rank 1 on host "), HasSubstr("no sign of life")));
}

TEST(ProcessGroup, NamesTheStoppedRank) {
  const auto ranks = fork_ranks(2, [](const RankSetting& setting) {
    const auto group = joined(setting, kQuick);
    const std::string process = group->gather(std::to_string(getpid()), "processes")[1];
    if (setting.rank == 1) raise(SIGSTOP);
    const std::string message = message_when_lost([&] { group->gather("x", "gradients"); });
    kill(std::stoi(process), SIGKILL);
    return message;
  });
  EXPECT_THAT(ranks[0].report, AllOf(StartsWith("rank 1 on host "), HasSubstr("no sign of life")));
}

TEST(ProcessGroup, NamesTheLiveRankThatDoesNotCome) {
  const auto ranks = fork_ranks(2, [](const RankSetting& setting) {
    ProcessGroupOptions options = kQuick;
    options.hung_after_seconds = 1;
    const auto group = joined(setting, options);
    if (setting.rank == 0) return message_when_lost([&] { group->gather("x", "gradients"); });
    return message_when_lost([&] {
      while (true) {
        group->check();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  });
  EXPECT_THAT(ranks[0].report, AllOf(StartsWith("rank 1 on host "), HasSubstr("has not come to \"gradients\"")));
  EXPECT_EQ(ranks[1].report, ranks[0].report);
}

TEST(ProcessGroup, WaitsForTheFirstRankLongerThanARankMayHang) {
  const auto ranks = fork_ranks(3, [](const RankSetting& setting) {
    ProcessGroupOptions options = kPatient;
    options.hung_after_seconds = 5;
    const auto group = joined(setting, options);
    const auto wait_for = [](std::chrono::seconds time) {
      return [time](const std::function<bool()>& go_on) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end)
          if (std::this_thread::sleep_for(std::chrono::milliseconds(50)); !go_on()) return std::string("stopped");
        return std::string("made");
      };
    };
    const auto always = [] { return true; };
    std::string report = await_first_rank(*group, wait_for(std::chrono::seconds(8)), always, "weights");
    // Any rank may end it.
    const auto until_asked = [&] { return setting.rank != 2; };
    report += " " + await_first_rank(*group, wait_for(std::chrono::seconds(120)), until_asked, "weights");
    group->leave();
    return report;
  });
  for (const ForkedRank& rank : ranks) EXPECT_EQ(rank.report, "made stopped");
}

TEST(ProcessGroup, PassesOnWhyARankEnds) {
  const auto ranks = fork_ranks(3, [](const RankSetting& setting) {
    const auto group = joined(setting, kQuick);
    if (setting.rank == 2) {
      group->fail("out of memory");
      return std::string();
    }
    return message_when_lost([&] { group->gather("x", "rollouts"); });
  });
  EXPECT_THAT(ranks[0].report, AllOf(StartsWith("rank 2 on host "), HasSubstr(": out of memory")));
  EXPECT_EQ(ranks[1].report, ranks[0].report);
}

TEST(ProcessGroup, NamesTheRanksThatDidNotCome) {
  const auto ranks = fork_ranks(3, [](const RankSetting& setting) {
    if (setting.rank == 1) return std::string("absent");
    const auto group = ProcessGroup::join(setting, {.join_seconds = 2});
    return group ? std::string("joined") : group.error().message;
  });
  EXPECT_THAT(ranks[0].report, HasSubstr("ranks 1 of 3 did not come to 127.0.0.1:"));
}

TEST(ProcessGroup, RefusesAThirdProcessWithATakenRankAtOnce) {
  int refused[2];  // a byte for each of the two others, which keep the store until then
  ASSERT_EQ(::pipe(refused), 0);
  const auto ranks = fork_ranks(3, [&](RankSetting setting) {
    if (setting.rank == 2) setting.rank = 1;
    setting.size = 2;
    const auto group = ProcessGroup::join(setting, kPatient);
    char byte = 0;
    if (!group) return ::write(refused[1], "xx", 2) == 2 ? group.error().message : "no byte was written";
    EXPECT_EQ(::read(refused[0], &byte, 1), 1);
    (*group)->leave();
    return std::string("joined");
  });
  ::close(refused[0]);
  ::close(refused[1]);
  EXPECT_EQ(ranks[0].report, "joined");
  EXPECT_THAT((std::vector{ranks[1].report, ranks[2].report}),
              UnorderedElementsAre("joined", AllOf(StartsWith("rank 1 of 2 is taken by "),
                                                   HasSubstr("expected a RANK that no other process has"))));
}

TEST(ProcessGroup, RefusesAHostThatDoesNotExist) {
  const auto group = ProcessGroup::join({.rank = 1, .size = 2, .address = "no such host", .port = 29500});
  ASSERT_FALSE(group);
  EXPECT_THAT(group.error().message, AllOf(StartsWith("no such host: "), HasSubstr("expected the host of rank 0")));
}

}  // namespace
}  // namespace carnot
