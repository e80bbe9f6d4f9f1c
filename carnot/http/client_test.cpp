#include "carnot/http/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "carnot/http/event_stream.h"
#include "testing/local_http_server.h"

namespace carnot {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using testing::GivenAnswer;
using ::testing::HasSubstr;
using testing::LocalHttpServer;
using ::testing::Not;
using testing::RawServer;
using testing::read_head;
using testing::ReceivedRequest;
using testing::write_all;

HttpRequest get(const std::string& url) { return {.method = "GET", .url = parse_url(url).value(), .headers = {}}; }

std::string error_of(const HttpRequest& request, const HttpLimits& limits = {}) {
  const auto answer = http_exchange(request, limits);
  return answer ? "" : answer.error().message;
}

/// Answers every request with these bytes, whatever it asks.
RawServer says(const std::string& bytes) {
  return RawServer([bytes](int connection) {
    read_head(connection);
    write_all(connection, bytes);
  });
}

/// Waits until the other side closes the connection.
void wait_for_end(int connection) {
  for (char c = 0; ::read(connection, &c, 1) > 0;) {
  }
}

TEST(HttpClient, SendsWhatItIsGivenAndReturnsWhatComes) {
  ReceivedRequest seen;
  LocalHttpServer server([&](const ReceivedRequest& request) {
    seen = request;
    return GivenAnswer{.status = 201, .body = "Grüße", .type = "text/plain", .headers = {{"X-Id", "7"}}};
  });
  HttpRequest request = get(server.url("/a b/ü?q=1&r=ä,+%20"));
  request.method = "POST";
  request.headers = {{"Authorization", "Bearer secret"}, {"Content-Type", "application/json"}};
  request.body = R"({"text": "schöne Grüße"})";
  const auto answer = http_exchange(request);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, "Grüße");
  EXPECT_EQ(*find_header(answer->headers, "x-id"), "7");
  EXPECT_EQ(find_header(answer->headers, "x-other"), nullptr);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.target, "/a%20b/%C3%BC?q=1&r=%C3%A4,+%20") << "encoded once, and nothing else changed";
  EXPECT_EQ(seen.body, request.body);
  EXPECT_EQ(seen.headers.at("authorization"), "Bearer secret");
  EXPECT_EQ(seen.headers.at("content-type"), "application/json");
}

TEST(HttpClient, ReturnsUnsuccessfulAnswers) {
  LocalHttpServer server([](const ReceivedRequest&) { return GivenAnswer{.status = 503, .body = "later"}; });
  const auto answer = http_exchange(get(server.url()));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->body, "later");
  EXPECT_FALSE(answer->is_success());
}

TEST(HttpClient, DoesNotFollowRedirects) {
  int requests = 0;
  LocalHttpServer server([&](const ReceivedRequest&) {
    ++requests;
    return GivenAnswer{.status = 302, .body = "", .headers = {{"Location", "/elsewhere"}}};
  });
  const auto answer = http_exchange(get(server.url("/here")));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 302);
  EXPECT_EQ(*find_header(answer->headers, "Location"), "/elsewhere");
  EXPECT_EQ(requests, 1);
}

TEST(HttpClient, SaysThatNothingIsListening) {
  std::string url;
  {
    const LocalHttpServer server([](const ReceivedRequest&) { return GivenAnswer{}; });
    url = server.url("/path?key=secret");
  }
  HttpRequest request = get(url);
  request.headers = {{"Authorization", "Bearer secret"}};
  request.body = "secret";
  EXPECT_THAT(error_of(request), AllOf(HasSubstr("GET http://127.0.0.1:"), HasSubstr("/path?...: no connection"),
                                       Not(HasSubstr("secret"))));
}

TEST(HttpClient, WaitsNoLongerThanItsTime) {
  const RawServer silent(wait_for_end);
  EXPECT_EQ(error_of(get(silent.url()), {.time = 100ms}), "GET " + silent.url() + "/: no whole answer within 0.1 s");
}

TEST(HttpClient, WaitsNoLongerForWhatComesByteByByte) {
  // Neither a head nor a body that never ends keeps an exchange alive, though each byte comes in time.
  for (const std::string begin : {"HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\n\r\n"}) {
    const RawServer slow([&](int connection) {
      read_head(connection);
      for (bool open = write_all(connection, begin); open; open = write_all(connection, "a"))
        std::this_thread::sleep_for(5ms);
    });
    EXPECT_THAT(error_of(get(slow.url()), {.time = 200ms}), HasSubstr("no whole answer within 0.2 s"));
  }
}

TEST(HttpClient, EndsWhenItIsCancelled) {
  std::stop_source stop;
  const RawServer silent([&](int connection) {
    stop.request_stop();
    wait_for_end(connection);
  });
  EXPECT_THAT(error_of(get(silent.url()), {.cancel = stop.get_token()}), HasSubstr(": cancelled"));
}

TEST(HttpClient, RefusesAnAnswerThatIsTooLarge) {
  LocalHttpServer server([](const ReceivedRequest&) { return GivenAnswer{.body = std::string(1001, 'a')}; });
  EXPECT_TRUE(http_exchange(get(server.url()), {.answer_bytes = 1001}).ok());
  EXPECT_THAT(error_of(get(server.url()), {.answer_bytes = 1000}), HasSubstr("the answer has more than 1000 bytes"));
  const RawServer endless([&](int connection) {
    read_head(connection);
    for (bool open = write_all(connection, "HTTP/1.1 200 OK\r\n\r\n"); open;)
      open = write_all(connection, std::string(4096, 'a'));
  });
  EXPECT_THAT(error_of(get(endless.url()), {.answer_bytes = 100'000}), HasSubstr("more than 100000 bytes"));
}

TEST(HttpClient, RefusesAnswersThatBreakOff) {
  for (const std::string cut :
       {"", "HTT", "HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "garbage\r\n\r\n"}) {
    const RawServer server = says(cut);
    EXPECT_THAT(error_of(get(server.url())), HasSubstr("ended before the answer was whole")) << cut;
  }
}

TEST(HttpClient, RefusesHeadersThatWouldBecomeOthers) {
  HttpRequest request = get("http://127.0.0.1:1/");
  request.headers = {{"X-Key", "secret\r\nX-Other: 1"}};
  EXPECT_THAT(error_of(request), AllOf(HasSubstr("the header \"X-Key\" has characters"), Not(HasSubstr("secret"))));
  request.headers = {{"X Key", "a"}};
  EXPECT_THAT(error_of(request), HasSubstr("the header \"X Key\""));
}

TEST(HttpClient, HandsOverAStreamAsItComes) {
  // The second event is sent only after the first one has arrived.
  std::stop_source first_came;
  const RawServer server([&](int connection) {
    read_head(connection);
    write_all(connection, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\ndata: tw");
    while (!first_came.stop_requested()) std::this_thread::sleep_for(1ms);
    write_all(connection, "o\n\ndata: three\n\n");
    wait_for_end(connection);
  });
  EventStream events;
  std::vector<std::string> seen;
  const auto answer = http_stream(get(server.url()), {}, [&](const HttpAnswer& so_far, std::string_view piece) {
    EXPECT_EQ(*find_header(so_far.headers, "Content-Type"), "text/event-stream");
    return events
        .add(piece,
             [&](const ServerSentEvent& event) {
               seen.push_back(event.data);
               first_came.request_stop();
               return event.data != "two";
             })
        .value();
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "");
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "two"})) << "the reader ended the exchange";
}

TEST(HttpClient, KeepsTheBodyOfAnErrorThatAnswersAStream) {
  LocalHttpServer server([](const ReceivedRequest&) { return GivenAnswer{.status = 400, .body = "why"}; });
  const auto answer = http_stream(get(server.url()), {}, [](const HttpAnswer&, std::string_view) -> bool {
    throw std::logic_error("no piece of it is the stream's");
  });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->body, "why");
}

TEST(HttpClient, LetsAReadersExceptionThrough) {
  LocalHttpServer server([](const ReceivedRequest&) { return GivenAnswer{.body = "text"}; });
  EXPECT_THROW((void)http_stream(get(server.url()), {},
                                 [](const HttpAnswer&, std::string_view) -> bool { throw std::out_of_range("it"); }),
               std::out_of_range);
}

TEST(HttpClient, SaysThatAServerDoesNotSpeakTls) {
  const RawServer plain([](int connection) {
    char first = 0;
    if (::read(connection, &first, 1) == 1) write_all(connection, "HTTP/1.1 400 Bad Request\r\n\r\n");
  });
  HttpRequest request = get(plain.url());
  request.url.secure = true;
  EXPECT_THAT(error_of(request, {.time = 5s}), HasSubstr("no secure connection"));
}

}  // namespace
}  // namespace carnot
