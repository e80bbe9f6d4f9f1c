// Trainer's and worker's side of the rollout transport with a real NATS server, without models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/remote_rollouts/transport/staleness.h"
#include "carnot/remote_rollouts/transport/task_board.h"
#include "carnot/remote_rollouts/transport/task_source.h"
#include "testing/local_http_server.h"
#include "tests/remote_rollouts/background.h"

namespace carnot::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

const GoOn kAlways = [] { return true; };
const std::string kHash(64, '5');

/// Of this machine, signed by itself.
struct Certificate {
  explicit Certificate(const ScratchFolder& scratch)
      : key(scratch.path("key.pem")), certificate(scratch.path("certificate.pem")) {
    Background openssl(
        {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", key, "-out", certificate},
        scratch.path("openssl.log"));
    EXPECT_EQ(openssl.wait(), 0) << openssl.written();
  }

  std::string key, certificate;
};

class Transport : public ::testing::Test {
 protected:
  TaskBoardOptions options(const NatsServer& server, const std::string& key = "") {
    const auto address = parse_broker_address(server.address(), "test").value();
    return {.address = address,
            .broker = {.url = address.server, .name = "trainer"},
            .key = key,
            .lease = milliseconds(1000),
            .kernels = "avx2"};
  }

  std::unique_ptr<TaskBoard> board(const TaskBoardOptions& options) {
    auto made = TaskBoard::open(options, kAlways);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    (*made)->set_setup((*made)->files().add("{}"), {});
    EXPECT_TRUE((*made)->announce(kAlways).value());
    return std::move(made).value();
  }

  std::unique_ptr<TaskSource> source(const NatsServer& server, const std::string& key = "") {
    const auto address = parse_broker_address(server.address(), "test").value();
    return TaskSource::connect(address, {.url = address.server, .name = "worker"}, key, kAlways).value();
  }

  /// As announced; waits for an answer from the broker.
  static Announcement announced(TaskSource& source) {
    auto trainer = source.trainer().value();
    while (!trainer) trainer = source.trainer().value();
    return std::move(trainer).value();
  }

  static std::vector<WorkerTask> tasks(const TaskBoard& board, int count) {
    std::vector<WorkerTask> all;
    for (int i = 0; i < count; ++i)
      all.push_back({.run = board.run(), .step = 3, .first_group = static_cast<std::uint64_t>(i), .weights = kHash});
    return all;
  }

  /// Waits until there is one.
  static WorkerTask next_task(TaskSource& source, const Announcement& trainer) {
    auto task = source.next_task(trainer).value();
    while (!task) task = source.next_task(trainer).value();
    return std::move(task).value();
  }

  /// Takes tasks and delivers results until `end`. `before` may delay a task.
  static void serve(
      TaskSource& source, std::atomic<bool>& end, const std::string& name,
      const std::function<bool(int served)>& before = [](int) { return true; }) {
    int served = 0;
    while (!end) {
      const auto leased = source.next_task(announced(source));
      ASSERT_TRUE(leased.ok()) << leased.error().message;
      if (!*leased) continue;
      if (!before(served++)) return;  // as if it died: the task is neither handed in nor given back
      const WorkerTask& task = **leased;
      const auto handed_in = source.hand_in(announced(source), task,
                                            {.worker = name, .kernels = "avx2", .rollout = "result of " + task.key()});
      ASSERT_TRUE(handed_in.ok()) << handed_in.error().message;
    }
  }

  /// Collects `count` tasks; what came, by task.
  static std::vector<std::string> collected(TaskBoard& board, int count) {
    std::vector<std::string> results(static_cast<std::size_t>(count));
    const auto all = tasks(board, count);
    board.set_accept([&](const WorkerTask& task, const WorkerResult& result) {
      EXPECT_TRUE(results[task.first_group].empty()) << "a second result of one task";
      results[task.first_group] = result.rollout;
      return TaskBoard::Verdict::Taken;
    });
    const auto whole = waited_for(board, all);
    EXPECT_TRUE(whole.ok() && *whole) << (whole.ok() ? "stopped" : whole.error().message);
    return results;
  }

  /// Publishes them and waits for their results.
  static Result<bool> waited_for(TaskBoard& board, const std::vector<WorkerTask>& all) {
    board.hand_out(all);
    return board.wait_for(all, kAlways, nullptr);
  }

  static std::vector<std::string> expected(int count) {
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back("result of 3-" + std::to_string(i));
    return all;
  }

  const ScratchFolder scratch_;
};

TEST_F(Transport, TasksOfADyingWorkerGoToAnotherOne) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto dying = source(server), living = source(server);
  std::atomic<bool> end = false;
  std::thread first([&] { serve(*dying, end, "dying", [](int served) { return served < 2; }); });
  std::thread second([&] {
    serve(*living, end, "living", [](int) {
      std::this_thread::sleep_for(milliseconds(20));
      return true;
    });
  });
  EXPECT_EQ(collected(*trainer, 12), expected(12));
  EXPECT_EQ(collected(*trainer, 3), expected(3)) << "a second round";
  end = true;
  first.join();
  second.join();
}

TEST_F(Transport, ASecondResultOfATaskIsDropped) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto one = source(server), other = source(server);
  std::thread worker([&] {
    const Announcement to = announced(*one);
    const WorkerTask task = next_task(*one, to);
    const WorkerResult result{.worker = "one", .kernels = "avx2", .rollout = "result of " + task.key()};
    EXPECT_TRUE(other->hand_in(to, task, result)->done);
    EXPECT_TRUE(one->hand_in(to, task, result)->done);
    WorkerTask foreign = task;
    foreign.run = std::string(32, 'f');
    EXPECT_TRUE(one->hand_in(to, foreign, result)->done) << "of another run: not needed";
  });
  EXPECT_EQ(collected(*trainer, 1), expected(1));
  worker.join();
}

TEST_F(Transport, TheBrokerMayRestartWithOrWithoutItsData) {
  NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto worker_source = source(server);
  std::atomic<bool> end = false;
  // The broker is cut off during the fifth task, and again during the tenth.
  constexpr int kCutAt[] = {5, 10};
  std::atomic<int> taken = 0, cuts = 0;
  std::thread worker([&] {
    serve(*worker_source, end, "worker", [&](int) {
      ++taken;
      while ((taken >= kCutAt[0] && cuts < 1) || (taken >= kCutAt[1] && cuts < 2))
        std::this_thread::sleep_for(milliseconds(5));
      return true;
    });
  });
  std::thread cutter([&] {
    for (const int at : kCutAt) {
      while (taken < at) std::this_thread::sleep_for(milliseconds(5));
      server.kill();
      ++cuts;
      std::this_thread::sleep_for(milliseconds(300));
      server.restart(at == kCutAt[0]);
    }
  });
  EXPECT_EQ(collected(*trainer, 20), expected(20));
  end = true;
  cutter.join();
  worker.join();
}

TEST_F(Transport, ARefusedResultSaysWhyAndItsTaskRemains) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto worker = source(server);
  std::atomic<bool> end = false;
  std::string refusals;
  std::thread thread([&] {
    const Announcement to = announced(*worker);
    const WorkerTask task = next_task(*worker, to);
    for (const WorkerResult& wrong : {WorkerResult{.worker = "w", .kernels = "avx512", .rollout = "fine"},
                                      WorkerResult{.worker = "w", .kernels = "avx2", .rollout = "wrong"}}) {
      const auto handed_in = worker->hand_in(to, task, wrong);
      EXPECT_FALSE(handed_in.ok());
      refusals += handed_in.error().message + "\n";
    }
    worker->give_back(to, task);
    serve(*worker, end, "w");
  });
  trainer->set_accept([&](const WorkerTask&, const WorkerResult& result) -> Result<TaskBoard::Verdict> {
    if (result.rollout == "wrong") return Error{"is no rollout"};
    end = true;
    return TaskBoard::Verdict::Taken;
  });
  const auto whole = waited_for(*trainer, tasks(*trainer, 1));
  EXPECT_TRUE(whole.ok() && *whole);
  thread.join();
  EXPECT_THAT(refusals, HasSubstr("refuses the result of task 3-0: computed with the kernels avx512; expected avx2"));
  EXPECT_THAT(refusals, HasSubstr("is no rollout"));
}

TEST_F(Transport, AResultOfOtherKernelsIsAcceptedIfTheTrainerAcceptsThem) {
  const NatsServer server(scratch_);
  TaskBoardOptions open = options(server);
  open.kernels = "avx512";
  open.takes_other_kernels = true;
  const auto trainer = board(open);
  const auto worker = source(server);
  std::atomic<bool> end = false;
  std::string kernels;
  trainer->set_accept([&](const WorkerTask&, const WorkerResult& result) {
    kernels = result.kernels;
    return TaskBoard::Verdict::Taken;
  });
  std::thread thread([&] { serve(*worker, end, "worker"); });
  const auto whole = waited_for(*trainer, tasks(*trainer, 1));
  EXPECT_TRUE(whole.ok() && *whole);
  end = true;
  thread.join();
  EXPECT_EQ(kernels, "avx2") << "the result says who sampled";
}

TEST_F(Transport, AStaleResultIsDroppedAndItsTaskIsRepeatedWithTheCurrentWeights) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const auto worker = source(server);
  trainer->set_weights(4, trainer->files().add("the current weights"));
  std::atomic<bool> end = false;
  std::vector<std::int64_t> versions;
  trainer->set_accept([&](const WorkerTask& task, const WorkerResult&) {
    versions.push_back(task.version);
    return task.version < 4 ? TaskBoard::Verdict::Again : TaskBoard::Verdict::Taken;
  });
  std::thread thread([&] { serve(*worker, end, "worker"); });
  const auto whole = waited_for(*trainer, tasks(*trainer, 1));
  EXPECT_TRUE(whole.ok() && *whole);
  end = true;
  thread.join();
  EXPECT_THAT(versions, ::testing::ElementsAre(0, 4));
}

/// A trainer that only counts its steps, and a worker that takes available tasks at once.
TEST_F(Transport, StepsAreRolledOutAheadAsFarAsTheBoundAllows) {
  constexpr std::int64_t kSteps = 6;
  const NatsServer server(scratch_);
  for (const std::int64_t max : {0, 1, 3}) {
    const auto trainer = board(options(server));
    const auto worker = source(server);
    std::mutex mutex;
    std::vector<std::int64_t> steps, versions;  // of the results, in the order in which they come
    trainer->set_accept([&](const WorkerTask& task, const WorkerResult&) {
      const std::lock_guard lock(mutex);
      steps.push_back(task.step);
      versions.push_back(task.version);
      return TaskBoard::Verdict::Taken;
    });
    const auto num_results = [&] {
      const std::lock_guard lock(mutex);
      return static_cast<std::int64_t>(steps.size());
    };
    std::atomic<bool> end = false;
    std::thread thread([&] { serve(*worker, end, "worker"); });
    StalenessBound bound(max, kSteps);
    std::int64_t handed_out = 0;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      bound.begin(step, 10 * step);
      std::vector<WorkerTask> due;
      for (; handed_out < bound.handed_out_before(); ++handed_out)
        due.push_back({.run = trainer->run(), .step = handed_out, .version = 10 * step, .weights = kHash});
      trainer->hand_out(due);
      const WorkerTask own{.run = trainer->run(), .step = step};
      EXPECT_TRUE(trainer->wait_for({own}, kAlways, nullptr).value());
      // The update is slow: whatever may be rolled out meanwhile is.
      while (num_results() < bound.handed_out_before()) std::this_thread::sleep_for(milliseconds(2));
    }
    end = true;
    thread.join();
    ASSERT_EQ(num_results(), kSteps);
    for (std::int64_t step = 0; step < kSteps; ++step) {
      const auto at = static_cast<std::size_t>(step);
      EXPECT_EQ(steps[at], step) << "earlier steps first";
      EXPECT_EQ(versions[at], 10 * std::max<std::int64_t>(0, step - max)) << "with " << max;
    }
  }
}

TEST_F(Transport, FilesArriveCompleteOrNotAtAll) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const std::string content(3'000'000, 'w'), path = scratch_.write("weights", content);
  const WorkerFile file = trainer->files().take(path).value();
  EXPECT_FALSE(std::filesystem::exists(path)) << "nothing is left when the trainer is killed";
  EXPECT_EQ(file.bytes, 3'000'000);
  const auto worker = source(server);
  const Announcement to = announced(*worker);
  const std::string copy = scratch_.path("copy");
  EXPECT_TRUE(worker->fetch(to, file, copy, kAlways)->done);
  EXPECT_EQ(read_file(copy).value(), content);
  for (const WorkerFile& wrong :
       {WorkerFile{.sha256 = kHash, .bytes = 5}, WorkerFile{.sha256 = file.sha256, .bytes = 5}}) {
    const WorkerAttempt attempt = worker->fetch(to, wrong, copy, kAlways).value();
    EXPECT_FALSE(attempt.done);
    EXPECT_FALSE(attempt.why_not.empty());
    EXPECT_FALSE(std::filesystem::exists(copy));
  }
  EXPECT_FALSE(worker->fetch(to, file, copy, [] { return false; })->done);
  const std::string damaged_path = scratch_.write("damaged", content);
  std::fstream damaging(damaged_path, std::ios::binary | std::ios::in | std::ios::out);
  const WorkerFile damaged = trainer->files().take(damaged_path).value();
  damaging.seekp(1'500'000).put('x').flush();
  EXPECT_THAT(worker->fetch(to, damaged, copy, kAlways)->why_not, HasSubstr("a SHA-256 other than announced"));
  EXPECT_FALSE(std::filesystem::exists(copy));
  trainer->files().drop(file);
  EXPECT_THAT(worker->fetch(to, file, copy, kAlways)->why_not, HasSubstr("status 404"));
}

/// Three million bytes of a trainer, as its weights.
class PeersOfTransport : public Transport {
 protected:
  WorkerFile weights_of(TaskBoard& trainer) {
    const WorkerFile file = trainer.files().take(scratch_.write("weights", content_)).value();
    trainer.set_weights(1, file);
    EXPECT_TRUE(trainer.announce(kAlways).value());
    return file;
  }
  /// Fetches it from any source.
  void fetch(TaskSource& worker, const WorkerFile& file, const std::string& copy) {
    const auto fetched = worker.fetch_from_any(announced(worker), file, copy, kAlways);
    ASSERT_TRUE(fetched.ok() && fetched->done) << (fetched.ok() ? fetched->why_not : fetched.error().message);
    EXPECT_EQ(read_file(copy).value(), content_);
  }

  const std::string content_ = std::string(3'000'000, 'w');
};

TEST_F(PeersOfTransport, ServeEachOtherWhatTheTrainerSentToOneOfThem) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server, "key"));
  const WorkerFile file = weights_of(*trainer);
  const auto first = source(server, "key"), second = source(server, "key"), third = source(server, "key");
  const std::string copy = scratch_.path("copy");
  ASSERT_TRUE(first->serve_to_peers({.host = "127.0.0.1", .key = "key"}));
  fetch(*first, file, copy);
  EXPECT_EQ(trainer->files().bytes_sent(), file.bytes);
  ASSERT_TRUE(first->keep("weights", file, copy));
  EXPECT_FALSE(std::filesystem::exists(copy)) << "nothing is left when the worker is killed";
  fetch(*second, file, copy);
  fetch(*third, file, copy);
  EXPECT_EQ(trainer->files().bytes_sent(), file.bytes) << "the others have it from the first";
  const WorkerFile other = trainer->files().add("later weights");
  const std::string later = scratch_.path("later");
  EXPECT_TRUE(first->fetch(announced(*first), other, later, kAlways)->done);
  ASSERT_TRUE(first->keep("weights", other, later));
  const std::int64_t before = trainer->files().bytes_sent();
  fetch(*second, file, copy);
  EXPECT_EQ(trainer->files().bytes_sent(), before + file.bytes) << "the first one has other weights now";
}

TEST_F(PeersOfTransport, ThatHaveEndedOrNeedAnotherKeyAreSkipped) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server, "key"));
  const WorkerFile file = weights_of(*trainer);
  const std::string copy = scratch_.path("copy");
  auto ended = source(server, "key");
  const auto locked = source(server, "key"), worker = source(server, "key");
  ASSERT_TRUE(locked->serve_to_peers({.host = "127.0.0.1", .key = "another"}));
  for (TaskSource* peer : {ended.get(), locked.get()}) {
    fetch(*peer, file, copy);
    ASSERT_TRUE(peer->keep("weights", file, copy));
  }
  ended.reset();
  fetch(*worker, file, copy);
  EXPECT_EQ(trainer->files().bytes_sent(), 3 * file.bytes);
}

TEST_F(PeersOfTransport, WithADamagedFileAreDetectedAndTheTrainerIsAsked) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server));
  const WorkerFile file = weights_of(*trainer);
  std::atomic<int> asked = 0;
  std::string wrong = content_;
  wrong[1'500'000] = 'x';
  const LocalHttpServer damaged([&](const ReceivedRequest&) {
    ++asked;
    return GivenAnswer{.body = wrong, .type = "application/octet-stream"};
  });
  const auto address = parse_broker_address(server.address(), "test").value();
  const auto broker = Broker::connect({.url = address.server, .name = "liar"}, kAlways).value();
  const WorkerPeer liar{.place = "process 1 on liar", .url = damaged.url()};
  ASSERT_TRUE(broker->announce(address.peers(), file.sha256 + ".1", peer_json(liar), milliseconds(60'000))->reached);
  const auto worker = source(server);
  const std::string copy = scratch_.path("copy");
  fetch(*worker, file, copy);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(trainer->files().bytes_sent(), file.bytes);
  fetch(*worker, file, copy);
  EXPECT_EQ(asked, 1) << "it is no longer asked";
  EXPECT_EQ(trainer->files().bytes_sent(), 2 * file.bytes);
}

TEST_F(PeersOfTransport, WaitWhileTheTrainerSendsAsManyFilesAsAllowed) {
  const NatsServer server(scratch_);
  TaskBoardOptions one_at_a_time = options(server);
  one_at_a_time.most_uploads = 1;
  const auto trainer = board(one_at_a_time);
  // More than the sockets' buffers hold.
  const WorkerFile file = trainer->files().take(scratch_.write("large", std::string(40'000'000, 'w'))).value();
  const auto slow = source(server), quick = source(server);
  std::atomic<bool> has_begun = false, may_end = false;
  std::thread thread([&] {
    const auto fetched = slow->fetch(announced(*slow), file, scratch_.path("slow"), [&] {
      has_begun = true;
      while (!may_end) std::this_thread::sleep_for(milliseconds(5));
      return false;
    });
    EXPECT_FALSE(fetched->done);
  });
  while (!has_begun) std::this_thread::sleep_for(milliseconds(5));
  const std::string copy = scratch_.path("copy");
  const Announcement to = announced(*quick);
  EXPECT_TRUE(quick->fetch(to, file, copy, kAlways)->is_busy);
  EXPECT_TRUE(quick->fetch(to, to.setup, copy, kAlways)->done) << "settings are not weights";
  int asked = 0;
  EXPECT_TRUE(quick->fetch_from_any(to, file, copy, [&] { return ++asked < 3; })->is_busy);
  may_end = true;
  EXPECT_TRUE(quick->fetch_from_any(to, file, copy, kAlways)->done);
  thread.join();
}

TEST_F(PeersOfTransport, AreForgottenSoonAfterTheirLastMessage) {
  const NatsServer server(scratch_);
  const auto broker = Broker::connect({.url = server.address(), .name = "worker"}, kAlways).value();
  ASSERT_TRUE(broker->announced_below("t", "a")->value.empty()) << "there is no such table";
  for (const char* key : {"a.1", "a.2", "b.1"})
    ASSERT_TRUE(broker->announce("t", key, std::string("of ") + key, milliseconds(2000))->reached);
  EXPECT_THAT(broker->announced_below("t", "a")->value, ::testing::UnorderedElementsAre("of a.1", "of a.2"));
  ASSERT_TRUE(broker->withdraw("t", "a.1")->reached);
  EXPECT_THAT(broker->announced_below("t", "a")->value, ::testing::ElementsAre("of a.2"));
  while (!broker->announced_below("t", "a")->value.empty()) std::this_thread::sleep_for(milliseconds(100));
  EXPECT_TRUE(broker->announced_below("t", "b")->value.empty());
}

TEST_F(Transport, TheTrainersKeyIsNeeded) {
  const NatsServer server(scratch_);
  const auto trainer = board(options(server, "right"));
  const Announcement to = announced(*source(server));
  const std::string copy = scratch_.path("copy");
  EXPECT_TRUE(source(server, "right")->fetch(to, to.setup, copy, kAlways)->done);
  for (const char* wrong : {"", "wrong"}) {
    const auto fetched = source(server, wrong)->fetch(to, to.setup, copy, kAlways);
    ASSERT_FALSE(fetched.ok());
    EXPECT_THAT(fetched.error().message, HasSubstr("refuses the key"));
    const auto handed_in = source(server, wrong)->hand_in(to, tasks(*trainer, 1)[0], {});
    ASSERT_FALSE(handed_in.ok());
    EXPECT_THAT(handed_in.error().message, HasSubstr("refuses the key"));
  }
}

TEST_F(Transport, NothingListensBeyondLoopbackWithoutAKey) {
  const NatsServer server(scratch_);
  TaskBoardOptions open = options(server);
  open.host = "0.0.0.0";
  EXPECT_THAT(TaskBoard::open(open, kAlways).error().message, HasSubstr("expected rollout.workers_key_env"));
}

TEST_F(Transport, ASecondTrainerTakesOverAndTheFirstSaysSo) {
  const NatsServer server(scratch_);
  auto first = board(options(server));
  std::string said;
  std::thread thread([&] {
    const auto whole = waited_for(*first, tasks(*first, 1));
    EXPECT_FALSE(whole.ok());
    said = whole.error().message;
  });
  const auto second = board(options(server));
  thread.join();
  EXPECT_THAT(said, HasSubstr("another trainer (" + this_place() + ") has taken " + server.address()));
  first.reset();
  const Announcement last = announced(*source(server));
  EXPECT_EQ(last.run, second->run()) << "the end of the first one";
  EXPECT_TRUE(last.open);
}

TEST_F(Transport, ARestartedBrokerWithAnOldAnnouncementGetsTheNewOne) {
  const NatsServer server(scratch_);
  const auto worker = source(server);
  auto earlier = board(options(server));
  const Announcement of_earlier = announced(*worker);
  earlier.reset();
  const auto latest = board(options(server));
  const Announcement now = announced(*worker);
  Announcement of_earlier_weights = now;
  of_earlier_weights.version = 4;
  of_earlier_weights.weights = now.setup;
  const auto address = parse_broker_address(server.address(), "test").value();
  const auto broker = Broker::connect({.url = address.server, .name = "x"}, kAlways).value();
  for (const Announcement& old : {of_earlier, of_earlier_weights}) {
    ASSERT_TRUE(broker->announce(address.table(), "trainer", announcement_json(old))->reached);
    std::atomic<bool> end = false;
    std::thread thread([&] {
      while (!end && announcement_json(announced(*worker)) != announcement_json(now))
        std::this_thread::sleep_for(milliseconds(20));
      serve(*worker, end, "worker");
    });
    EXPECT_EQ(collected(*latest, 3), expected(3));
    end = true;
    thread.join();
  }
}

TEST_F(Transport, TheEndOfATrainerIsAnnounced) {
  const NatsServer server(scratch_);
  auto trainer = board(options(server));
  const auto worker = source(server);
  EXPECT_TRUE(announced(*worker).open);
  trainer.reset();
  EXPECT_FALSE(announced(*worker).open);
}

TEST_F(Transport, ARefusalByTheBrokerIsAnErrorThatSaysWhatToDo) {
  const NatsServer locked(scratch_, {"--auth", "token-of-the-server"});
  const auto address = parse_broker_address(locked.address(), "test").value();
  const auto connect = [&](const std::string& token) {
    return Broker::connect({.url = address.server, .name = "x", .token = token}, kAlways);
  };
  EXPECT_TRUE(connect("token-of-the-server").ok());
  for (const char* wrong : {"", "another"})
    EXPECT_THAT(connect(wrong).error().message, HasSubstr("refuses this key; expected a credentials file")) << wrong;
  EXPECT_THAT(Broker::check({.url = address.server, .name = "x"}).error().message, HasSubstr("refuses this key"));
  EXPECT_TRUE(Broker::check({.url = address.server, .name = "x", .token = "token-of-the-server"}));
  EXPECT_TRUE(Broker::check({.url = "nats://127.0.0.1:" + std::to_string(free_port()), .name = "x"})) << "it may come";
  const NatsServer plain(scratch_, {}, false);
  const auto refused = Broker::connect({.url = plain.address(), .name = "x"}, kAlways);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("has no JetStream; expected one started with nats-server -js"));
}

TEST_F(Transport, TlsIsVerifiedAgainstTheAuthority) {
  const Certificate mine(scratch_);
  const std::string& certificate = mine.certificate;
  const NatsServer server(scratch_, {"--tls", "--tlscert", certificate, "--tlskey", mine.key});
  const std::string secure = "tls" + server.address().substr(4);
  EXPECT_TRUE(Broker::connect({.url = secure, .name = "x", .authority = certificate}, kAlways).ok());
  const auto unknown = Broker::connect({.url = secure, .name = "x"}, kAlways);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("no secure connection"));
  const auto plain = Broker::connect({.url = server.address(), .name = "x"}, kAlways);
  ASSERT_FALSE(plain.ok()) << "a server with TLS is not contacted without it";
  EXPECT_THAT(plain.error().message, HasSubstr("no secure connection"));
}

TEST_F(Transport, FilesAndResultsGoThroughTls) {
  const Certificate mine(scratch_);
  const NatsServer server(scratch_);
  TaskBoardOptions secure = options(server);
  secure.certificate = mine.certificate;
  secure.private_key = mine.key;
  const auto trainer = board(secure);
  const std::string content(3'000'000, 'w');
  const WorkerFile file = trainer->files().add(content);
  const auto worker = source(server);
  const Announcement to = announced(*worker);
  EXPECT_TRUE(to.url.starts_with("https://127.0.0.1:")) << to.url;
  const std::string copy = scratch_.path("copy");
  EXPECT_THAT(worker->fetch(to, file, copy, kAlways)->why_not, HasSubstr("certificate cannot be trusted"));
  ::setenv("SSL_CERT_FILE", mine.certificate.c_str(), 1);
  EXPECT_TRUE(worker->fetch(to, file, copy, kAlways)->done);
  EXPECT_EQ(read_file(copy).value(), content);
  std::atomic<bool> end = false;
  std::thread thread([&] { serve(*worker, end, "worker"); });
  EXPECT_EQ(collected(*trainer, 3), expected(3));
  end = true;
  thread.join();
  Announcement plain = to;
  plain.url.replace(0, 5, "http");
  EXPECT_FALSE(worker->fetch(plain, file, copy, kAlways)->done) << "a server with TLS accepts nothing else";
  ::unsetenv("SSL_CERT_FILE");
  secure.private_key = mine.certificate;
  EXPECT_THAT(TaskBoard::open(secure, kAlways).error().message, HasSubstr("expected PEM files of a certificate"));
}

TEST_F(Transport, WaitsForABrokerUntilStopped) {
  int asked = 0;
  const auto stopped = Broker::connect({.url = "nats://127.0.0.1:" + std::to_string(free_port()), .name = "x"},
                                       [&] { return ++asked < 3; });
  ASSERT_TRUE(stopped.ok()) << stopped.error().message;
  EXPECT_EQ(*stopped, nullptr);
}

}  // namespace
}  // namespace carnot::testing
