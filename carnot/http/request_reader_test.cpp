// What a server reads and what it refuses: framing, limits, types.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <tuple>
#include <vector>

#include "testing/http_exchange.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace carnot::testing;  // NOLINT: the exchanges of this test

TEST(HttpServer, ReadsABodyInChunks) {
  const auto server = started(server_options());
  EXPECT_THAT(exchanged(server->port(), request_text("POST", "/", "", kClose + "Transfer-Encoding: chunked\r\n") +
                                            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
              HasSubstr("'abcde'"));
}

TEST(HttpServer, RefusesABodyThatIsTooLarge) {
  HttpServerOptions with = server_options();
  with.max_body_bytes = 10;
  const auto server = started(with);
  EXPECT_THAT(exchanged(server->port(), request_text("POST", "/", "0123456789", kClose)), HasSubstr("'0123456789'"));
  const std::string too_large = exchanged(server->port(), request_text("POST", "/", "0123456789a"));
  EXPECT_THAT(too_large, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(too_large, HasSubstr("413! the body is larger than 10 bytes"));
  EXPECT_THAT(exchanged(server->port(), request_text("POST", "/", "", "Transfer-Encoding: chunked\r\n") +
                                            "6\r\nabcdef\r\n6\r\nabcdef\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 413"));
}

TEST(HttpServer, RefusesAHeaderThatIsTooLarge) {
  HttpServerOptions with = server_options();
  with.max_header_bytes = 1000;
  const auto server = started(with);
  std::string headers;
  for (int i = 0; i < 100; ++i) headers += "X-" + std::to_string(i) + ": 01234567890\r\n";
  EXPECT_THAT(exchanged(server->port(), request_text("GET", "/", "", headers)), StartsWith("HTTP/1.1 431"));
}

TEST(HttpServer, ARequestThatDoesNotArriveInTimeIsEnded) {
  HttpServerOptions with = server_options();
  with.receive_time = milliseconds(50);
  const auto server = started(with);
  for (const std::string& part : {std::string("GET / HT"), std::string("GET / HTTP/1.1\r\nHost: local"),
                                  request_text("POST", "/", "", "Content-Length: 9\r\n") + "abc"}) {
    EXPECT_THAT(exchanged(server->port(), part), StartsWith("HTTP/1.1 408")) << part;
  }
}

TEST(HttpServer, BodiesOfOtherTypesAreRefused) {
  const auto server = started(server_options());
  const auto status = [&](const std::string& type) {
    const std::string header = "Content-Type:" + type + "\r\n";
    return exchanged(server->port(), request_text("POST", "/", "x", kClose + header)).substr(9, 3);
  };
  for (const char* type :
       {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp", "multipart/form-data; boundary=b"})
    EXPECT_EQ(status(type), "415") << type;
  for (const char* type : {" application/json", "Application/JSON ; charset=utf-8"})
    EXPECT_EQ(status(type), "200") << type;
  EXPECT_THAT(exchanged(server->port(), request_text("POST", "/", "", kClose + "Content-Type: text/plain\r\n")),
              StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, RefusesWhatTheStandardRefusesAndReadsNothingAfterIt) {
  const auto server = started(server_options());
  const std::string smuggled = request_text("GET", "/smuggled");
  const auto post = [](const std::string& headers, const std::string& body) {
    return request_text("POST", "/", "", headers) + body;
  };
  const auto chunks = [&](const std::string& body) { return post("Transfer-Encoding: chunked\r\n", body); };
  const auto get = [](const std::string& headers) { return request_text("GET", "/", "", headers); };
  const std::string uri(70'000, 'u');
  const std::vector<std::tuple<std::string, std::string, int>> table = {
      {"no HTTP at all", "hello\r\n\r\n", 400},
      {"two lengths", post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"), 400},
      {"two different lengths", post("Content-Length: 3\r\nContent-Length: 0\r\n", "abc"), 400},
      {"a list of lengths", post("Content-Length: 3, 3\r\n", "abc"), 400},
      {"a signed length", post("Content-Length: +3\r\n", "abc"), 400},
      {"a negative length", post("Content-Length: -3\r\n", "abc"), 400},
      {"a hexadecimal length", post("Content-Length: 0x3\r\n", "abc"), 400},
      {"a length with a blank in it", post("Content-Length: 3 3\r\n", "abc"), 400},
      {"no length", post("Content-Length:\r\n", "abc"), 400},
      {"a length beyond 64 bits", post("Content-Length: 99999999999999999999\r\n", "abc"), 413},
      {"length and coding", post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"), 400},
      {"two codings", post("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"), 501},
      {"an unknown coding", post("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"), 501},
      {"chunks in HTTP/1.0", "POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"a chunk of 0x1f", chunks("0x3\r\nabc\r\n0\r\n\r\n"), 400},
      {"a signed chunk", chunks("+3\r\nabc\r\n0\r\n\r\n"), 400},
      {"a negative chunk", chunks("-3\r\nabc\r\n0\r\n\r\n"), 400},
      {"a chunk without size", chunks("\r\nabc\r\n0\r\n\r\n"), 400},
      {"a chunk after a blank", chunks(" 3\r\nabc\r\n0\r\n\r\n"), 400},
      {"a chunk beyond 64 bits", chunks("10000000000000003\r\nabc\r\n0\r\n\r\n"), 413},
      {"a chunk that is longer than it says", chunks("3\r\nabcd\r\n0\r\n\r\n"), 400},
      {"a chunk that ends in LF", chunks("3\nabc\r\n0\r\n\r\n"), 400},
      {"a trailer without a colon", chunks("3\r\nabc\r\n0\r\nno colon\r\n\r\n"), 400},
      {"two hosts", get("Host: localhost\r\n"), 400},
      {"no host", "GET / HTTP/1.1\r\n\r\n", 400},
      {"a NUL in a value", get(std::string("X: a\0b\r\n", 8)), 400},
      {"a bare CR in a value", get("X: a\rb\r\n"), 400},
      {"a bare LF", get("X: a\nY: b\r\n"), 400},
      {"a blank before the colon", get("Content-Length : 3\r\n"), 400},
      {"a folded line", get("X: a\r\n b\r\n"), 400},
      {"a line without colon", get("X\r\n"), 400},
      {"a name with braces", get("X{}: a\r\n"), 400},
      {"a tab in the request line", "GET\t/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"two blanks in the request line", "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"no version", "GET /\r\nHost: localhost\r\n\r\n", 400},
      {"another version", "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505},
      {"a target that is no path", "GET a HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"half an escape", "GET /%4 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"a long target", "GET /" + uri + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414},
      {"an expectation", get("Expect: more\r\n"), 417},
  };
  for (const auto& [what, request, status] : table) {
    const std::string answer = exchanged(server->port(), request + smuggled);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + std::to_string(status) + " ")) << what;
    EXPECT_THAT(answer, HasSubstr(std::to_string(status) + "! ")) << what;
    EXPECT_THAT(answer, HasSubstr("Connection: close")) << what;
    EXPECT_THAT(answer, Not(HasSubstr("smuggled"))) << what;
  }
}

TEST(HttpServer, AcceptsWhatTheStandardAccepts) {
  const auto server = started(server_options());
  const std::string end = request_text("GET", "/next", "", kClose);
  const auto chunks = [](const std::string& body) {
    return request_text("POST", "/", "", "transfer-encoding:\tCHUNKED \r\n") + body;
  };
  const std::vector<std::pair<std::string, std::string>> table = {
      {chunks("3\r\nabc\r\n0\r\nChecksum: 1\r\nOther: 2\r\n\r\n"), "POST / 'abc'"},
      {chunks("003;name=value;other\r\nabc\r\n000\r\n\r\n"), "POST / 'abc'"},
      {"\r\n" + request_text("GET", "/"), "GET / ''"},
      {request_text("GET", "/a%20b%2f?query"), "GET /a b/ ''"},
      {request_text("GET", "http://localhost/absolute?x"), "GET /absolute ''"},
      {request_text("OPTIONS", "*"), "OPTIONS * ''"},
      {request_text("DELETE", "/", "body"), "DELETE / 'body'"},
      {request_text("GET", "/", "body"), "GET / 'body'"},
      {request_text("GET", "/", "", "X:\r\nY:  \xc3\xa4 \t\r\n"), "GET / ''"},
      {request_text("POST", "/", "body", "Expect: 100-continue\r\n"), "100 Continue\r\n\r\nHTTP/1.1 200 OK"},
      {request_text("HEAD", "/"), "Content-Length: 9\r\n\r\nHTTP/1.1 200"},
  };
  for (const auto& [request, expected] : table) {
    const std::string answer = exchanged(server->port(), request + end);
    EXPECT_THAT(answer, HasSubstr(expected)) << request;
    EXPECT_THAT(answer, HasSubstr("GET /next ''")) << request;
  }
  EXPECT_THAT(exchanged(server->port(), "GET /old HTTP/1.0\r\nHost: localhost\r\n\r\n"), HasSubstr("GET /old ''"));
}

}  // namespace
}  // namespace carnot
