#include "carnot/core/subprocess/peer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/subprocess/answer_reader.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

PeerOptions shell(const std::string& script, double call_seconds = 60) {
  return {
      .name = "peer", .program = {.command = {"sh", "-c", script}}, .start_seconds = 60, .call_seconds = call_seconds};
}

/// Answers every request with its id and its `x`.
const std::string kEcho = R"(sed -u 's/.*"id":\([0-9]*\),.*"x":\([0-9]*\).*/{"id":\1,"y":\2}/')";
/// Answers the greeting as kEcho does, and leaves the rest to what follows.
const std::string kGreets = R"(read line; echo '{"id":1}'; )";

/// What constructing a peer and calling it once throws.
std::string failure_of(const PeerOptions& options) {
  try {
    Peer peer(options, {{"x", 0}});
    peer.call({{"x", 1}});
  } catch (const PeerFailure& failure) {
    return failure.what();
  }
  return "";
}

TEST(Peer, GivesEveryCallerItsOwnAnswer) {
  Peer peer(shell(kEcho), {{"x", 7}});
  EXPECT_EQ(peer.greeting().value->at("y"), 7);
  std::vector<std::thread> callers;
  std::vector<int> wrong(4, 0);
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&, c] {
      for (int i = 0; i < 200; ++i)
        if (peer.call({{"x", 1000 * c + i}}).value->at("y") != 1000 * c + i) ++wrong[c];
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
  EXPECT_TRUE(peer.is_alive());
}

TEST(Peer, TakesAnswersInAnyOrder) {
  // Three requests are read before any is answered, the last one first.
  Peer peer(shell(kGreets + "read a; read b; read c; for x in 4 3 2; do echo \"{\\\"id\\\":$x}\"; done; cat"), {});
  std::vector<std::thread> callers;
  std::mutex mutex;
  std::set<int> ids;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      const int id = peer.call({}).value->at("id");
      const std::lock_guard lock(mutex);
      ids.insert(id);
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ids, (std::set<int>{2, 3, 4}));
}

TEST(Peer, SendsWhatGatheredInOneBatch) {
  // Says how many lines of requests it was sent: far fewer than there are requests.
  const std::string script = R"(read line; echo '{"id":1,"batch":true}'; n=0; while read line; do n=$((n+1)); )"
                             R"(for id in $(echo "$line" | grep -o '"id":[0-9]*' | cut -d: -f2); do )"
                             R"(echo "{\"id\":$id,\"line\":$n}"; done; done)";
  Peer peer(shell(script), {});
  constexpr int kCallers = 8, kCalls = 10;
  std::mutex mutex;
  std::set<int> lines;
  int answers = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) {
        const int line = peer.call({}).value->at("line");
        const std::lock_guard lock(mutex);
        lines.insert(line);
        ++answers;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(answers, kCallers * kCalls);
  EXPECT_LT(lines.size(), kCallers * kCalls / 2);
}

TEST(Peer, ReportsAnErrorOfTheOtherSideAndContinues) {
  Peer peer(shell(kGreets + R"(read line; echo '{"id":2,"error":"no such task"}'; read line; echo '{"id":3}'; cat)"),
            {});
  try {
    peer.call({});
    FAIL() << "expected a failure";
  } catch (const PeerFailure& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("peer (process "), HasSubstr("): no such task")));
  }
  EXPECT_TRUE(peer.is_alive());
  EXPECT_EQ(peer.call({}).value->at("id"), 3);
}

TEST(Peer, TreatsANullErrorAsNoError) {
  Peer peer(shell(kGreets + R"(read line; echo '{"id":2,"error":null,"x":1}'; cat)"), {});
  const PeerAnswer answer = peer.call({});
  AnswerReader reader(answer);
  double x = 0;
  reader.number("x", x);
  reader.finish();
  EXPECT_EQ(x, 1);
}

TEST(Peer, SaysHowTheProcessFailed) {
  EXPECT_THAT(failure_of({.name = "peer", .program = {.command = {"/nowhere/at/all"}}}),
              HasSubstr("peer: cannot start \"/nowhere/at/all\": No such file or directory"));
  EXPECT_THAT(failure_of(shell("exit 3")), HasSubstr("exited with status 3"));
  EXPECT_THAT(failure_of(shell(kGreets + "read line; kill -9 $$")), HasSubstr("was killed by signal 9"));
  EXPECT_THAT(failure_of(shell("echo out of memory >&2; exit 1")),
              AllOf(HasSubstr("exited with status 1"), HasSubstr("its last words: out of memory")));
  EXPECT_THAT(failure_of(shell(kGreets + "exec sleep 60", 0.2)), HasSubstr("did not answer within 0.2 s"));
  EXPECT_THAT(failure_of(shell(kGreets + "read line; echo hello; cat")), HasSubstr("line 2: not JSON at byte 1"));
  EXPECT_THAT(failure_of(shell(kGreets + "read line; echo '[2]'; cat")),
              HasSubstr("expected an object with the id of a request"));
  EXPECT_THAT(failure_of(shell(kGreets + R"(read line; echo '{"id":9}'; cat)")),
              HasSubstr("id 9 belongs to no open request"));
  EXPECT_THAT(failure_of(shell(kGreets + R"(read line; echo '{"id":1}'; cat)")),
              HasSubstr("id 1 belongs to no open request"));
  EXPECT_THAT(failure_of(shell(kGreets + "read line; head -c 17000000 /dev/zero | tr '\\0' x; cat")),
              HasSubstr("line 2: 16777216 bytes without an end"));
}

TEST(Peer, ThatNoLongerReadsHasFailed) {
  Peer peer(shell(kGreets + "exec sleep 60", 0.3), {});
  EXPECT_THROW(peer.call({{"text", std::string(1 << 20, 'x')}}), PeerFailure);
  EXPECT_FALSE(peer.is_alive());
}

TEST(Peer, FailsEveryWaitingCallerAtOnce) {
  Peer peer(shell(kGreets + "read a; read b; read c; exit 5"), {});
  std::vector<std::thread> callers;
  std::atomic<int> failures = 0;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      try {
        peer.call({});
      } catch (const PeerFailure&) {
        ++failures;
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(failures, 3);
}

TEST(Peer, LogsStandardErrorUnderItsName) {
  std::mutex mutex;
  std::string logged;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) {
    const std::lock_guard lock(mutex);
    logged += message + "\n";
  });
  {
    Peer peer(shell("echo loading >&2; " + kGreets + "cat >/dev/null"), {});
  }
  set_log_sink(before);
  EXPECT_THAT(logged, AllOf(HasSubstr("peer (process "), HasSubstr("): loading")));
}

TEST(Peer, ThatClosedItsStandardErrorCostsNoTime) {
  Peer peer(shell("exec 2>&-; " + kEcho), {{"x", 0}});
  const auto cpu_seconds = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(cpu_seconds() - before, 0.1) << "the reader spins";
}

TEST(Peer, SaysWhatIsMissingWithoutTheSupervisor) {
  ::setenv("CARNOT_SUPERVISOR", "/nowhere/carnot-supervisor", 1);
  EXPECT_EQ(failure_of(shell("cat")),
            "peer: there is no /nowhere/carnot-supervisor; set CARNOT_SUPERVISOR to the program carnot-supervisor");
  ::unsetenv("CARNOT_SUPERVISOR");
}

/// Whether all are gone that hold the pipe 9 open while and after a peer runs the script.
bool leaves_nothing(const std::string& script) {
  const std::string pipe = ::testing::TempDir() + "carnot_peer_" + std::to_string(::getpid());
  EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Descriptor read_end(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK));
  {
    Peer peer(shell("exec 9>'" + pipe + "'; " + kGreets + script), {});
  }
  ::unlink(pipe.c_str());
  char byte = 0;
  return ::read(read_end.get(), &byte, 1) == 0;
}

TEST(Peer, IsKilledWithAllThatItStartedIfItDoesNotEnd) {
  EXPECT_TRUE(leaves_nothing("sleep infinity & sleep infinity"));
  EXPECT_TRUE(leaves_nothing("setsid --fork sleep infinity; sleep infinity"));
}

TEST(Peer, ThatEndsLeavesNothingThatItStarted) {
  EXPECT_TRUE(leaves_nothing("setsid --fork sleep infinity; read line"));
}

TEST(PeerPool, ReplacesAProcessThatIsOver) {
  PeerPool pool(shell(kGreets + "read line; exit 1"), {}, 1);
  const auto first = pool.take();
  EXPECT_EQ(pool.take(), first);
  EXPECT_THROW(first->call({}), PeerFailure);
  EXPECT_NE(pool.take(), first);
}

TEST(PeerPool, SpreadsItsUsersOverTheProcesses) {
  PeerPool pool(shell(kEcho), {{"x", 0}}, 3);
  std::vector<std::shared_ptr<Peer>> users;
  std::map<Peer*, int> shares;
  for (int i = 0; i < 12; ++i) ++shares[users.emplace_back(pool.take()).get()];
  EXPECT_EQ(shares.size(), 3);
  for (const auto& [peer, share] : shares) EXPECT_EQ(share, 4);
}

TEST(PeerPool, DoesNotStartABrokenProgramAgainAndAgain) {
  const std::string starts = ::testing::TempDir() + "carnot_peer_starts_" + std::to_string(::getpid());
  PeerPool pool(shell("echo start >>'" + starts + "'; exit 1"), {}, 1);
  int failures = 0;
  for (int i = 0; i < 1000; ++i) {
    try {
      pool.take();
    } catch (const PeerFailure& failure) {
      EXPECT_THAT(failure.what(), HasSubstr("exited with status 1"));
      ++failures;
    }
  }
  EXPECT_EQ(failures, 1000);
  EXPECT_LT(split_lines(read_file(starts).value()).size(), 100u) << "most calls fail without a start";
  ::unlink(starts.c_str());
}

}  // namespace
}  // namespace carnot
