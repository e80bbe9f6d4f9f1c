#include "carnot/http/url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(const std::string& text) {
  const auto url = parse_url(text);
  return url ? "" : url.error().message;
}

TEST(Url, HasParts) {
  const Url url = parse_url(" HTTPS://Example.ORG:8443/v1/chat?version=2&x=a%20b#part ").value();
  EXPECT_TRUE(url.secure);
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, 8443);
  EXPECT_EQ(url.path, "/v1/chat");
  EXPECT_EQ(url.query, "version=2&x=a%20b");
  EXPECT_EQ(url.target(), "/v1/chat?version=2&x=a%20b");
}

TEST(Url, HasUsualPortsAndPath) {
  const Url plain = parse_url("http://localhost").value(), secure = parse_url("https://[::1]?q").value();
  EXPECT_EQ(plain.port, 80);
  EXPECT_EQ(plain.target(), "/");
  EXPECT_EQ(secure.port, 443);
  EXPECT_EQ(secure.host, "::1");
  EXPECT_EQ(secure.target(), "/?q");
}

TEST(Url, EncodesWhatARequestLineCannotHold) {
  EXPECT_EQ(parse_url("http://a/b c/ü\"?q=<ä>").value().target(), "/b%20c/%C3%BC%22?q=%3C%C3%A4%3E");
}

TEST(Url, TakesAPathBelowItsOwn) {
  EXPECT_EQ(parse_url("http://a/v1").value().append("chat/completions").target(), "/v1/chat/completions");
  EXPECT_EQ(parse_url("http://a/v1//?x=1").value().append("/models").target(), "/v1/models?x=1");
  EXPECT_EQ(parse_url("http://a").value().append("models").target(), "/models");
}

TEST(Url, IsShownWithoutItsQuery) {
  EXPECT_EQ(parse_url("http://a:80/b").value().shown(), "http://a/b");
  EXPECT_EQ(parse_url("https://[::1]:8/b?key=secret").value().shown(), "https://[::1]:8/b?...");
}

TEST(Url, SaysWhatIsWrong) {
  EXPECT_EQ(error_of("localhost:8000/v1"), "\"localhost:8000/v1\": expected http://HOST[:PORT]/PATH or https://...");
  EXPECT_THAT(error_of("ftp://a/b"), HasSubstr("expected http://"));
  EXPECT_THAT(error_of(""), HasSubstr("expected http://"));
  EXPECT_THAT(error_of("http://"), HasSubstr("expected a host name"));
  EXPECT_THAT(error_of("http://münchen.de"), HasSubstr("xn--"));
  EXPECT_THAT(error_of("http://a:0/"), HasSubstr("expected a port from 1 to 65535"));
  EXPECT_THAT(error_of("http://a:65536/"), HasSubstr("expected a port"));
  EXPECT_THAT(error_of("http://a:8x/"), HasSubstr("expected a port"));
  EXPECT_THAT(error_of("http://[::1/"), HasSubstr("expected ']'"));
  EXPECT_THAT(error_of("http://a/b\nc"), HasSubstr("a control character"));
  EXPECT_THAT(error_of("http://a/" + std::string(9000, 'x')), HasSubstr("expected at most 8000"));
}

TEST(Url, NeverShowsASecret) {
  for (const char* text : {"http://me:secret@a/b", "me:secret@a/b", "http://a b?key=secret", "ftp://a?key=secret"})
    EXPECT_THAT(error_of(text), AllOf(Not(""), Not(HasSubstr("secret")))) << text;
}

}  // namespace
}  // namespace carnot
