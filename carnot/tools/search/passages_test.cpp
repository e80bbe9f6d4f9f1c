#include "carnot/tools/search/passages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Passages, AreRowsOrLines) {
  const auto rows =
      parse_passages("{\"title\": \"Lima\", \"text\": \"capital of Peru\"}\n\n{\"contents\": \"x\"}\n", "p.jsonl");
  ASSERT_EQ(rows.value().size(), 2u);
  EXPECT_EQ(rows.value()[0].title, "Lima");
  EXPECT_EQ(rows.value()[1].text, "x");
  EXPECT_EQ(parse_passages("one\n{two}\n", "p.txt").value()[1].text, "{two}");
}

TEST(Passages, EveryBadLineIsTold) {
  EXPECT_THAT(parse_passages("{\"text\": 5}\n[1]\n{\"text\": \"ok\"}\n", "p.jsonl").error().message,
              AllOf(HasSubstr("p.jsonl:1: expected a string under text"), HasSubstr("p.jsonl:2")));
  EXPECT_EQ(parse_passages("\n", "p.txt").error().message, "p.txt: no passages");
}

TEST(SearchTool, ShowsTheBestPassagesWithTheirTitles) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "carnot_passages.jsonl";
  std::ofstream(file) << "{\"title\": \"Peru\", \"text\": \"Its capital is Lima.\"}\n"
                         "{\"title\": \"Japan\", \"text\": \"Its capital is Tokyo.\"}\n"
                         "{\"text\": \"Llamas live in Peru.\"}\n";
  const auto tool = make_search(file).value();
  std::filesystem::remove(file);
  const auto ask = [&](const char* arguments) { return tool->call(arguments, Tool::Deadline::max()); };
  EXPECT_EQ(ask(R"({"query": "capital peru", "limit": 2})").text,
            "[1] Peru\nIts capital is Lima.\n\n[2] Llamas live in Peru.");
  EXPECT_EQ(ask(R"({"query": "zebra"})").status, "empty");
  EXPECT_FALSE(make_search("/nowhere.jsonl").ok());
}

}  // namespace
}  // namespace carnot
