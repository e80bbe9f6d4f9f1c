#include "carnot/http/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <future>
#include <thread>
#include <tuple>

#include "carnot/core/base/descriptor.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Descriptor connected(int port) {
  Descriptor client(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return client;
}

void send(const Descriptor& to, const std::string& text) {
  EXPECT_EQ(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

/// Until the server closes, or has said `last`.
std::string received(const Descriptor& from, const std::string& last = "\n\n\n") {
  std::string all;
  char bytes[4096];
  for (ssize_t count = 0; !all.ends_with(last) && (count = ::recv(from.get(), bytes, sizeof bytes, 0)) > 0;)
    all.append(bytes, static_cast<std::size_t>(count));
  return all;
}

const std::string kJson = "Content-Type: application/json\r\n";

std::string request_text(const std::string& method, const std::string& path, const std::string& body = "",
                         const std::string& headers = "") {
  const std::string type = headers.find("Content-Type") == std::string::npos ? kJson : "";
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + type + headers +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body;
}

/// One request on its own connection, closed afterwards.
std::string exchanged(int port, const std::string& request) {
  const Descriptor client = connected(port);
  send(client, request);
  return received(client);
}

const std::string kClose = "Connection: close\r\n";

HttpReply echo(const HttpCall& call, const HttpConnection&) {
  return {.body = call.method + " " + call.path + " '" + call.body + "'"};
}

HttpServerOptions options() {
  return {.error_body = [](int status, const std::string& message) { return std::to_string(status) + "! " + message; }};
}

std::unique_ptr<HttpServer> started(const HttpServerOptions& with, HttpHandler handler = echo) {
  auto server = HttpServer::start(with, std::move(handler));
  EXPECT_TRUE(server.ok());
  return std::move(server).value();
}

TEST(HttpServer, AnswersRequestsOneAfterTheOtherOnAConnection) {
  const auto server = started(options());
  const Descriptor client = connected(server->port());
  send(client, request_text("POST", "/a/b", "body", "Accept-Encoding: gzip, br\r\nRange: bytes=0-1\r\n"));
  EXPECT_THAT(received(client, "'body'"), StartsWith("HTTP/1.1 200"));
  // The next two at once.
  send(client, request_text("GET", "/c") + request_text("PUT", "/d", "x", kClose));
  const std::string rest = received(client);
  EXPECT_THAT(rest, HasSubstr("GET /c ''"));
  EXPECT_THAT(rest, HasSubstr("PUT /d 'x'"));
}

TEST(HttpServer, ReadsABodyInChunks) {
  const auto server = started(options());
  EXPECT_THAT(exchanged(server->port(), request_text("POST", "/", "", kClose + "Transfer-Encoding: chunked\r\n") +
                                            "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
              HasSubstr("'abcde'"));
}

TEST(HttpServer, StreamsPiecesAsTheyCome) {
  std::promise<void> first_was_read;
  auto read = first_was_read.get_future();
  const auto server = started(options(), [&](const HttpCall&, const HttpConnection&) {
    return HttpReply{.content_type = "text/event-stream",
                     .pieces = [&read, count = 0]() mutable -> std::optional<std::string> {
                       if (count == 1) read.wait();
                       return count < 3 ? std::optional<std::string>("piece" + std::to_string(count++)) : std::nullopt;
                     }};
  });
  const Descriptor client = connected(server->port());
  send(client, request_text("GET", "/"));
  EXPECT_THAT(received(client, "piece0\r\n"), HasSubstr("text/event-stream"));
  first_was_read.set_value();
  EXPECT_EQ(received(client, "0\r\n\r\n"), "6\r\npiece1\r\n6\r\npiece2\r\n0\r\n\r\n");
}

TEST(HttpServer, ReportsWhenTheClientHasLeftAndFreesTheAnswer) {
  std::promise<void> freed;
  const auto server = started(options(), [&](const HttpCall&, const HttpConnection& connection) {
    EXPECT_TRUE(connection.is_open());
    const std::shared_ptr<int> held(new int(0), [&](int* value) {
      delete value;
      freed.set_value();
    });
    return HttpReply{.pieces = [&connection, held]() -> std::optional<std::string> {
      return connection.is_open() ? std::optional<std::string>("more") : std::nullopt;
    }};
  });
  {
    const Descriptor client = connected(server->port());
    send(client, request_text("GET", "/"));
    received(client, "more\r\n");
  }
  EXPECT_EQ(freed.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(HttpServer, RefusesABodyThatIsTooLarge) {
  HttpServerOptions with = options();
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
  HttpServerOptions with = options();
  with.max_header_bytes = 1000;
  const auto server = started(with);
  std::string headers;
  for (int i = 0; i < 100; ++i) headers += "X-" + std::to_string(i) + ": 01234567890\r\n";
  EXPECT_THAT(exchanged(server->port(), request_text("GET", "/", "", headers)), StartsWith("HTTP/1.1 431"));
}

TEST(HttpServer, InvalidHttpIsAnError) {
  const auto server = started(options());
  EXPECT_THAT(exchanged(server->port(), "hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(
      exchanged(server->port(), request_text("POST", "/", "x", "Content-Type: multipart/form-data; boundary=b\r\n")),
      StartsWith("HTTP/1.1 415"));
}

TEST(HttpServer, ARequestThatDoesNotArriveInTimeIsEnded) {
  HttpServerOptions with = options();
  with.receive_time = milliseconds(50);
  const auto server = started(with);
  for (const std::string& part : {std::string("GET / HT"), std::string("GET / HTTP/1.1\r\nHost: local"),
                                  request_text("POST", "/", "", "Content-Length: 9\r\n") + "abc"}) {
    EXPECT_THAT(exchanged(server->port(), part), StartsWith("HTTP/1.1 408")) << part;
  }
}

TEST(HttpServer, AnIdleConnectionIsClosed) {
  HttpServerOptions with = options();
  with.idle_time = milliseconds(50);
  const auto server = started(with);
  EXPECT_EQ(received(connected(server->port())), "");
}

TEST(HttpServer, TooManyConnectionsAreAskedToRetryLater) {
  HttpServerOptions with = options();
  with.max_connections = 2;
  const auto server = started(with);
  const Descriptor first = connected(server->port()), second = connected(server->port());
  for (const Descriptor* client : {&first, &second}) {
    send(*client, request_text("GET", "/"));
    received(*client, "''");
  }
  const std::string refused = exchanged(server->port(), request_text("GET", "/"));
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1"));
}

TEST(HttpServer, AnswersManyClientsThatComeTogether) {
  const auto server = started(options());
  std::vector<Descriptor> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(connected(server->port()));
  for (const Descriptor& client : clients) send(client, request_text("GET", "/together", "", kClose));
  for (const Descriptor& client : clients) EXPECT_THAT(received(client), HasSubstr("GET /together ''"));
}

TEST(HttpServer, AKeyIsNeededWhereThereIsOne) {
  HttpServerOptions with = options();
  with.key = "secret";
  with.open_paths = {"/health"};
  const auto server = started(with);
  const auto status = [&](const std::string& headers, const std::string& path = "/") {
    return exchanged(server->port(), request_text("POST", path, "x", kClose + headers)).substr(9, 3);
  };
  EXPECT_EQ(status(""), "401");
  EXPECT_EQ(status("Authorization: Bearer secre\r\n"), "401");
  EXPECT_EQ(status("Authorization: Bearer secrets\r\n"), "401");
  EXPECT_EQ(status("Authorization: Basic secret\r\n"), "401");
  EXPECT_EQ(status("Authorization: Bearer secret\r\n"), "200");
  EXPECT_EQ(status("authorization: bearer secret\r\n"), "200");
  EXPECT_EQ(status("", "/health"), "200");
}

TEST(HttpServer, OnLoopbackOtherNamesAreRefused) {
  const auto server = started(options());
  const auto status = [&](const std::string& host) {
    return exchanged(server->port(), "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n").substr(9, 3);
  };
  EXPECT_EQ(status("127.0.0.1:8000"), "200");
  EXPECT_EQ(status("localhost"), "200");
  EXPECT_EQ(status("rebound.example"), "403");
  EXPECT_EQ(status("127.rebound.example"), "403");
}

TEST(HttpServer, WebPagesOfOtherOriginsAreRefusedWithoutAKey) {
  HttpServerOptions with_key = options();
  with_key.key = "secret";
  const auto server = started(options()), keyed = started(with_key);
  const auto status = [](const HttpServer& to, const std::string& headers) {
    return exchanged(to.port(), request_text("POST", "/", "x", kClose + headers)).substr(9, 3);
  };
  for (const char* origin : {"http://evil.example", "null", "https://localhost", "http://localhost:3000", ""})
    EXPECT_EQ(status(*server, std::string("Origin: ") + origin + "\r\n"), "403") << origin;
  EXPECT_EQ(status(*server, "Origin: http://localhost\r\n"), "200");
  EXPECT_EQ(status(*keyed, "Origin: http://proxy.example\r\n"), "401");
  EXPECT_EQ(status(*keyed, "Origin: http://proxy.example\r\nAuthorization: Bearer secret\r\n"), "200");
}

TEST(HttpServer, BodiesOfOtherTypesAreRefused) {
  const auto server = started(options());
  const auto status = [&](const std::string& type) {
    const std::string header = "Content-Type:" + type + "\r\n";
    return exchanged(server->port(), request_text("POST", "/", "x", kClose + header)).substr(9, 3);
  };
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"})
    EXPECT_EQ(status(type), "415") << type;
  for (const char* type : {" application/json", "Application/JSON ; charset=utf-8"})
    EXPECT_EQ(status(type), "200") << type;
  EXPECT_THAT(exchanged(server->port(), request_text("POST", "/", "", kClose + "Content-Type: text/plain\r\n")),
              StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, RefusesWhatTheStandardRefusesAndReadsNothingAfterIt) {
  const auto server = started(options());
  const std::string smuggled = request_text("GET", "/smuggled");
  const auto post = [](const std::string& headers, const std::string& body) {
    return request_text("POST", "/", "", headers) + body;
  };
  const auto chunks = [&](const std::string& body) { return post("Transfer-Encoding: chunked\r\n", body); };
  const auto get = [](const std::string& headers) { return request_text("GET", "/", "", headers); };
  const std::string uri(70'000, 'u');
  const std::vector<std::tuple<std::string, std::string, int>> table = {
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
  const auto server = started(options());
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

TEST(HttpServer, AClientThatHasClosedItsSideGetsItsAnswer) {
  const auto server = started(options(), [](const HttpCall&, const HttpConnection& connection) {
    while (!connection.may_have_left()) std::this_thread::yield();
    return HttpReply{.body = connection.is_open() ? "an answer" : "nothing"};
  });
  const Descriptor client = connected(server->port());
  send(client, request_text("GET", "/"));
  ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
  EXPECT_THAT(received(client), HasSubstr("an answer"));
}

TEST(HttpServer, AnInterimAnswerShowsWhetherAClientThatClosedItsSideIsStillThere) {
  std::promise<void> left;
  const auto server = started(options(), [&](const HttpCall& call, const HttpConnection& connection) {
    if (call.path == "/left") {
      while (connection.is_open()) std::this_thread::sleep_for(milliseconds(10));
      left.set_value();
    } else {
      for (int i = 0; i < 150; ++i, std::this_thread::sleep_for(milliseconds(10))) EXPECT_TRUE(connection.is_open());
    }
    return HttpReply{.body = "an answer"};
  });
  const Descriptor client = connected(server->port());
  send(client, request_text("GET", "/"));
  ASSERT_EQ(::shutdown(client.get(), SHUT_WR), 0);
  send(connected(server->port()), request_text("GET", "/left"));
  EXPECT_EQ(left.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_THAT(received(client), StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
}

TEST(HttpServer, AHandlerThatThrowsIsAnError) {
  const auto server = started(
      options(), [](const HttpCall&, const HttpConnection&) -> HttpReply { throw std::runtime_error("broken"); });
  EXPECT_THAT(exchanged(server->port(), request_text("GET", "/")), StartsWith("HTTP/1.1 500"));
}

TEST(HttpServer, StopsOnceWhatIsInWorkIsAnswered) {
  std::promise<void> arrived, go;
  auto may_go = go.get_future();
  auto server = started(options(), [&](const HttpCall& call, const HttpConnection&) {
    if (call.path != "/slow") return HttpReply{.body = "ok"};
    arrived.set_value();
    may_go.wait();
    return HttpReply{.body = "done at last"};
  });
  const Descriptor idle = connected(server->port());
  const Descriptor client = connected(server->port());
  send(client, request_text("GET", "/slow"));
  arrived.get_future().wait();
  std::thread stopper([&] { server->stop(); });
  go.set_value();
  EXPECT_THAT(received(client), HasSubstr("done at last"));
  stopper.join();
  EXPECT_EQ(received(idle), "");
}

TEST(HttpServer, StopsWithoutWaitingForTheRestOfARequest) {
  HttpServerOptions with = options();
  with.receive_time = std::chrono::hours(24);
  auto server = started(with);
  std::vector<Descriptor> clients;
  for (const std::string& half : {std::string("GET / HT"), std::string("GET / HTTP/1.1\r\nHost: local"),
                                  request_text("POST", "/", "", "Content-Length: 9\r\n") + "abc"}) {
    clients.push_back(connected(server->port()));
    send(clients.back(), request_text("GET", "/first"));
    EXPECT_THAT(received(clients.back(), "''"), HasSubstr("GET /first"));
    send(clients.back(), half);
  }
  server->stop();
  for (const Descriptor& client : clients) EXPECT_THAT(received(client), Not(HasSubstr("200")));
}

TEST(HttpServer, AnAddressThatIsTakenIsAnErrorThatNamesIt) {
  const auto server = started(options());
  HttpServerOptions same = options();
  same.port = server->port();
  const auto second = HttpServer::start(same, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(same.port)));
}

TEST(HttpServer, LoopbackAddressesAreThoseOfThisMachine) {
  for (const char* host : {"127.0.0.1", "127.1.2.3", "localhost", "::1"}) EXPECT_TRUE(is_loopback(host)) << host;
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "127.example.org", "localhost.example", ""})
    EXPECT_FALSE(is_loopback(host)) << host;
}

}  // namespace
}  // namespace carnot
