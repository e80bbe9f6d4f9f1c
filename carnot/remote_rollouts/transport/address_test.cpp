#include "carnot/remote_rollouts/transport/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace carnot {
namespace {

using ::testing::HasSubstr;

TEST(BrokerAddress, HasAServerAndAName) {
  const BrokerAddress plain = parse_broker_address("nats://node-1", "rollout.workers").value();
  EXPECT_EQ(plain.server, "nats://node-1:4222");
  EXPECT_EQ(plain.name, "carnot");
  EXPECT_EQ(plain.text(), "nats://node-1:4222");
  const BrokerAddress named = parse_broker_address("tls://[::1]:4333/seed_2", "rollout.workers").value();
  EXPECT_EQ(named.server, "tls://[::1]:4333");
  EXPECT_EQ(named.table(), "seed_2-trainer");
  EXPECT_EQ(named.text(), "tls://[::1]:4333/seed_2");
  EXPECT_EQ(parse_broker_address("nats://a:1/", "x")->name, "carnot");
}

TEST(BrokerAddress, SaysWhatIsExpected) {
  for (const char* wrong : {"", "node-1:4222", "http://node-1:4222", "nats://", "nats://a:99999", "nats://a/b/c",
                            "nats://a/b c", "nats://a?b"}) {
    const auto address = parse_broker_address(wrong, "rollout.workers");
    ASSERT_FALSE(address) << wrong;
    EXPECT_THAT(address.error().message, HasSubstr("expected nats://HOST:PORT")) << wrong;
  }
}

TEST(BrokerAddress, HasNoPasswordInIt) {
  const auto address = parse_broker_address("nats://me:secret@node-1", "rollout.workers");
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().message, HasSubstr("CARNOT_NATS_PASSWORD"));
  EXPECT_THAT(address.error().message, ::testing::Not(HasSubstr("secret")));
}

TEST(WorkerKeys, ComeFromTheEnvironment) {
  ::setenv("CARNOT_NATS_TOKEN", "abc", 1);
  const auto options = broker_options({.server = "nats://a:1"}, {.credentials = "me.creds"}, "worker").value();
  ::unsetenv("CARNOT_NATS_TOKEN");
  EXPECT_EQ(options.token, "abc");
  EXPECT_EQ(options.credentials, "me.creds");
  EXPECT_TRUE(options.user.empty());
}

TEST(WorkerKeys, OfTlsNeedATlsAddress) {
  EXPECT_THAT(broker_options({.server = "nats://a:1"}, {.authority = "ca.pem"}, "worker").error().message,
              HasSubstr("expected tls://"));
  EXPECT_THAT(broker_options({.server = "tls://a:1"}, {.certificate = "c.pem"}, "worker").error().message,
              HasSubstr("come together"));
}

}  // namespace
}  // namespace carnot
