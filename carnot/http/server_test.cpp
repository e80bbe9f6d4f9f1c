#include "carnot/http/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "testing/http_exchange.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace carnot::testing;  // NOLINT: the exchanges of this test

TEST(HttpServer, AnswersRequestsOneAfterTheOtherOnAConnection) {
  const auto server = started(server_options());
  const Descriptor client = connected(server->port());
  send(client, request_text("POST", "/a/b", "body", "Accept-Encoding: gzip, br\r\nRange: bytes=0-1\r\n"));
  EXPECT_THAT(received(client, "'body'"), StartsWith("HTTP/1.1 200"));
  // The next two at once.
  send(client, request_text("GET", "/c") + request_text("PUT", "/d", "x", kClose));
  const std::string rest = received(client);
  EXPECT_THAT(rest, HasSubstr("GET /c ''"));
  EXPECT_THAT(rest, HasSubstr("PUT /d 'x'"));
}

TEST(HttpServer, StreamsPiecesAsTheyCome) {
  std::promise<void> first_was_read;
  auto read = first_was_read.get_future();
  const auto server = started(server_options(), [&](const HttpCall&, const HttpConnection&) {
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
  const auto server = started(server_options(), [&](const HttpCall&, const HttpConnection& connection) {
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

TEST(HttpServer, AnIdleConnectionIsClosed) {
  HttpServerOptions with = server_options();
  with.idle_time = milliseconds(50);
  const auto server = started(with);
  EXPECT_EQ(received(connected(server->port())), "");
}

TEST(HttpServer, TooManyConnectionsAreAskedToRetryLater) {
  HttpServerOptions with = server_options();
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
  const auto server = started(server_options());
  std::vector<Descriptor> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(connected(server->port()));
  for (const Descriptor& client : clients) send(client, request_text("GET", "/together", "", kClose));
  for (const Descriptor& client : clients) EXPECT_THAT(received(client), HasSubstr("GET /together ''"));
}

TEST(HttpServer, AKeyIsNeededWhereThereIsOne) {
  HttpServerOptions with = server_options();
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
  const auto server = started(server_options());
  const auto status = [&](const std::string& host) {
    return exchanged(server->port(), "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n").substr(9, 3);
  };
  EXPECT_EQ(status("127.0.0.1:8000"), "200");
  EXPECT_EQ(status("localhost"), "200");
  EXPECT_EQ(status("rebound.example"), "403");
  EXPECT_EQ(status("127.rebound.example"), "403");
}

TEST(HttpServer, WebPagesOfOtherOriginsAreRefusedWithoutAKey) {
  HttpServerOptions with_key = server_options();
  with_key.key = "secret";
  const auto server = started(server_options()), keyed = started(with_key);
  const auto status = [](const HttpServer& to, const std::string& headers) {
    return exchanged(to.port(), request_text("POST", "/", "x", kClose + headers)).substr(9, 3);
  };
  for (const char* origin : {"http://evil.example", "null", "https://localhost", "http://localhost:3000", ""})
    EXPECT_EQ(status(*server, std::string("Origin: ") + origin + "\r\n"), "403") << origin;
  EXPECT_EQ(status(*server, "Origin: http://localhost\r\n"), "200");
  EXPECT_EQ(status(*keyed, "Origin: http://proxy.example\r\n"), "401");
  EXPECT_EQ(status(*keyed, "Origin: http://proxy.example\r\nAuthorization: Bearer secret\r\n"), "200");
}

TEST(HttpServer, AClientThatHasClosedItsSideGetsItsAnswer) {
  const auto server = started(server_options(), [](const HttpCall&, const HttpConnection& connection) {
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
  const auto server = started(server_options(), [&](const HttpCall& call, const HttpConnection& connection) {
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
  const auto server = started(server_options(), [](const HttpCall&, const HttpConnection&) -> HttpReply {
    throw std::runtime_error("broken");
  });
  EXPECT_THAT(exchanged(server->port(), request_text("GET", "/")), StartsWith("HTTP/1.1 500"));
}

TEST(HttpServer, StopsOnceWhatIsInWorkIsAnswered) {
  std::promise<void> arrived, go;
  auto may_go = go.get_future();
  auto server = started(server_options(), [&](const HttpCall& call, const HttpConnection&) {
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
  HttpServerOptions with = server_options();
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
  const auto server = started(server_options());
  HttpServerOptions same = server_options();
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
