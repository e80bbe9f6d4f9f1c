// Who may connect: keys, certificates, and brokers that refuse or are away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

#include "carnot/core/base/file.h"
#include "tests/remote_rollouts/transport.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;

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
