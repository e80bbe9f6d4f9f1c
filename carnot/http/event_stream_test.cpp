#include "carnot/http/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace carnot {
namespace {

using ::testing::HasSubstr;

/// "event|data|id" of each event, the text taken in pieces of `size` bytes.
std::vector<std::string> events_of(std::string_view text, std::size_t size) {
  EventStream stream;
  std::vector<std::string> events;
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size())))
    EXPECT_TRUE(stream
                    .add(text.substr(0, size),
                         [&](const ServerSentEvent& event) {
                           events.push_back(event.event + "|" + event.data + "|" + event.id);
                           return true;
                         })
                    .value());
  return events;
}

TEST(EventStream, ReadsTheStandardsExamples) {
  const std::string text =
      "\xEF\xBB\xBF: a comment\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
      "data: YHOO\r\ndata: +2\rdata: 10\r\n\r\ndata\n\ndata\ndata\n\nevent: add\ndata: 73857293\nretry: 10\nunknown: "
      "1\n\n"
      "event: nothing\n\ndata: last: Grüße\n\ndata: unfinished\n";
  const std::vector<std::string> expected{
      "message|first event|1", "message|second event|", "message| third event|", "message|YHOO\n+2\n10|", "message||",
      "message|\n|",           "add|73857293|",         "message|last: Grüße|"};
  for (const std::size_t size : {1, 2, 3, 7, 1000}) EXPECT_EQ(events_of(text, size), expected) << size;
}

TEST(EventStream, StopsWhenNoMoreIsWanted) {
  EventStream stream;
  int events = 0;
  EXPECT_FALSE(stream
                   .add("data: 1\n\ndata: 2\n\n",
                        [&](const ServerSentEvent&) {
                          ++events;
                          return false;
                        })
                   .value());
  EXPECT_EQ(events, 1);
}

TEST(EventStream, RefusesAnEventThatIsTooLong) {
  const auto any = [](const ServerSentEvent&) { return true; };
  EventStream stream(20);
  EXPECT_TRUE(stream.add("data: 0123456789\n\ndata: 0123456789\n\n", any).ok()) << "each event counts by itself";
  EXPECT_THAT(stream.add("data: 0123456789\ndata: 0123456789\n", any).error().message,
              HasSubstr("an event of more than 20 bytes"));
  EXPECT_FALSE(EventStream(20).add(std::string(21, 'a'), any).ok());
}

}  // namespace
}  // namespace carnot
