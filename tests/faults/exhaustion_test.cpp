// A machine that lacks something: standard streams, threads, memory, exclusive access to the run's folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "carnot/core/base/file.h"
#include "cases.h"
#include "fault.h"
#include "small_run.h"

namespace carnot::testing {
namespace {

namespace fs = std::filesystem;

class Exhaustion : public ::testing::Test {
 protected:
  void SetUp() override {
    const ProgramRun run = run_carnot(run_.command());
    ASSERT_EQ(run.exit, 0) << run.err;
    straight_ = content_of(run_.world());
  }

  void expect_straight() { EXPECT_EQ(difference(straight_, content_of(run_.world())), ""); }

  /// Success with the uninterrupted run's files, or a message, after which one more command produces them.
  void expect_ends_well(const Interposition& interposition) {
    run_.reset();
    const ProgramRun run = run_interposed(run_.command(), interposition);
    EXPECT_EQ(indecent_end(run), "");
    if (run.exit != 0) {
      const ProgramRun again = run_carnot(run_.command(), {.deadline = kHang});
      EXPECT_EQ(again.exit, 0) << again.err;
    }
    expect_straight();
  }

  SmallRun run_;
  FolderContent straight_;
};

TEST_F(Exhaustion, WithoutStandardStreamsARunWritesTheSameFiles) {
  std::vector<Case> cases;
  for (const std::vector<int>& closed :
       std::vector<std::vector<int>>{{0, 1, 2}, {1}, {2}, {0}, {1, 2}, {0, 1}, {0, 2}}) {
    std::string name = "closed";
    for (const int descriptor : closed) name += " " + std::to_string(descriptor);
    cases.push_back({.name = name, .check = [this, closed] {
                       run_.reset();
                       const ProgramRun run = run_carnot(run_.command(), {.closed = closed, .deadline = kHang});
                       EXPECT_FALSE(run.timed_out);
                       EXPECT_EQ(run.signal, 0);
                       expect_straight();
                     }});
  }
  run_cases(cases);
}

TEST_F(Exhaustion, ThreadsThatCannotStartEndInAMessageOrChangeNothing) {
  std::vector<Case> cases;
  for (long first = 1; first <= 12; ++first)
    cases.push_back({.name = "from thread " + std::to_string(first),
                     .check = [this, first] { expect_ends_well({.first_failing_thread = first}); }});
  run_cases(cases);
}

TEST_F(Exhaustion, AllocationsThatFailEndInAMessageOrChangeNothing) {
  std::vector<Case> cases;
  for (const std::size_t large : {std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20})
    for (const long first : {1, 2, 5, 17, 60, 200, 700, 2500})
      cases.push_back({.name = "from allocation " + std::to_string(first) + " of " + std::to_string(large) + " bytes",
                       .check = [this, first, large] {
                         expect_ends_well({.first_failing_allocation = first, .large_bytes = large});
                       }});
  run_cases(cases);
}

TEST_F(Exhaustion, AnAddressSpaceThatIsTooSmallEndsInAMessageOrChangesNothing) {
  std::vector<Case> cases;
  for (const std::uint64_t mebibytes : {1, 100, 400, 600, 800, 1000, 1200, 1500, 2000})
    cases.push_back({.name = std::to_string(mebibytes) + " MiB",
                     .check = [this, mebibytes] { expect_ends_well({.address_space = mebibytes << 20}); }});
  run_cases(cases);
}

TEST_F(Exhaustion, OfTwoProcessesOnOneFolderOneRunsAndTheOtherNamesIt) {
  std::vector<Case> cases;
  for (int trial = 0; trial < 6; ++trial)
    cases.push_back({.name = "trial " + std::to_string(trial), .check = [this] {
                       run_.reset();
                       const auto start = [&] { return run_carnot(run_.command(), {.deadline = kHang}); };
                       auto other = std::async(std::launch::async, start);
                       std::vector<ProgramRun> ends{start(), other.get()};
                       EXPECT_TRUE(ends[0].exit == 0 || ends[1].exit == 0) << ends[0].err << ends[1].err;
                       for (const ProgramRun& end : ends) {
                         EXPECT_EQ(indecent_end(end), "");
                         // The second process may find the run finished, and then repeats its last evaluation.
                         if (end.exit != 0) {
                           EXPECT_THAT(end.err, ::testing::HasSubstr("process"));
                         }
                       }
                       expect_straight();
                     }});
  run_cases(cases);
}

}  // namespace
}  // namespace carnot::testing
