// Weights and other files from a trainer to its workers, and from worker to worker.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "carnot/core/base/file.h"
#include "testing/local_http_server.h"
#include "tests/remote_rollouts/transport.h"

namespace carnot::testing {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

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

}  // namespace
}  // namespace carnot::testing
