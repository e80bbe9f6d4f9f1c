#include "carnot/core/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "carnot/core/base/file.h"
#include "carnot/core/base/limits.h"
#include "testing/paths.h"
#include "testing/trials.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string problem_of(std::string_view text) {
  const auto value = parse_json(text, "here");
  return value ? "none" : value.error().message;
}

TEST(ParseJson, EqualsTheLibrarysParser) {
  for (const char* text : {"null", "true", "-1", "18446744073709551615", "0.1", "\"caf\\u00e9\"", "[]", "{}",
                           "[[],{},[1,[2]],3]", R"({"b":{"y":[1,{"z":null}],"x":{}},"a":[{"k":1},{"k":2}],"":""})"}) {
    EXPECT_EQ(parse_json(text, "here").value(), Json::parse(text)) << text;
    EXPECT_EQ(parse_json<OrderedJson>(text, "here").value().dump(), OrderedJson::parse(text).dump()) << text;
  }
}

TEST(ParseJson, SaysWhereTheTextStopsBeingJsonAndCutsWhatItQuotes) {
  EXPECT_THAT(problem_of("[1, }"), StartsWith("here: not JSON at byte 5: parse error at line 1, column 5"));
  EXPECT_THAT(problem_of(""), StartsWith("here: not JSON at byte 1"));
  EXPECT_THAT(problem_of("[1e999]"), StartsWith("here: not JSON at byte"));
  EXPECT_LT(problem_of("\"" + std::string(100'000, 'a')).size(), 300u);
  EXPECT_LT(problem_of("{\"" + std::string(100'000, 'a') + "\":}").size(), 300u);
}

TEST(ParseJson, RefusesWhatIsNestedTooDeeply) {
  EXPECT_EQ(problem_of(nested(kMaxJsonDepth)), "none");
  EXPECT_EQ(problem_of(nested(kMaxJsonDepth + 1)), "here: nests deeper than 64 levels");
  EXPECT_EQ(problem_of(nested(1'000'000)), "here: nests deeper than 64 levels");
  std::string objects;
  for (int i = 0; i < 1'000'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(problem_of(objects), "here: nests deeper than 64 levels");
}

TEST(ParseJson, RefusesADuplicateKey) {
  EXPECT_EQ(problem_of(R"({"a":1,"b":{"a":2},"a":3})"), "here: the key \"a\" appears twice in one object");
  EXPECT_FALSE(parse_json<OrderedJson>(R"({"a":1,"a":1})", "here").ok());
  EXPECT_EQ(problem_of(R"([{"a":1},{"a":1}])"), "none");
}

TEST(ParseJson, ReadsAnOrderedObjectOfManyKeysWithoutSearchingItForEach) {
  // With a linear search per key, this would take 10^11 string comparisons: hours, not a second.
  const int keys = testing::trials(400'000);
  std::string text = "{";
  for (int i = 0; i < keys; ++i) text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":" + std::to_string(i);
  const auto value = parse_json<OrderedJson>(text + "}", "here");
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(value->size(), static_cast<std::size_t>(keys));
  EXPECT_EQ(value->begin().key(), "0");
  EXPECT_EQ(value->back(), keys - 1);
}

TEST(ParseJson, RefusesMoreThanItWouldKeepInMemory) {
  EXPECT_THAT(problem_of(std::string(kMaxJsonBytes + 1, ' ')), HasSubstr("has 134217729 bytes; JSON of at most"));
  EXPECT_EQ(JsonLimits().values, kMaxJsonValues);
  const auto refused = [](std::string_view text) {
    const auto value = parse_json(text, "here", {.values = 6});
    return value ? "none" : value.error().message;
  };
  EXPECT_EQ(refused("[[0,1],[2,3]]"), "here: has more than 6 values");
  EXPECT_EQ(refused(R"({"a":0,"b":1,"c":2,"d":3,"e":4,"f":5})"), "here: has more than 6 values");
  EXPECT_EQ(refused("[[0,1],[2]]"), "none");
}

TEST(ParseJsonObject, SaysWhatItFoundInstead) {
  EXPECT_EQ(parse_json_object("[]", "here").error().message, "here: expected a JSON object, found array");
  EXPECT_TRUE(parse_json_object("{}", "here").ok());
}

TEST(ParseJson, IsTheOnlyParserOfJson) {
  std::vector<std::string> others;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_path("carnot"))) {
    const std::string name = entry.path().string();
    const bool source = name.ends_with(".cpp") || name.ends_with(".h");
    if (!source || name.ends_with("_test.cpp") || name.ends_with("base/json.cpp")) continue;
    const std::string text = read_file(name).value();
    for (const char* call : {"json::parse(", "Json::parse(", "sax_parse(", "::accept("})
      if (text.find(call) != std::string::npos) others.push_back(name + ": " + call);
  }
  EXPECT_THAT(others, ::testing::IsEmpty());
}

}  // namespace
}  // namespace carnot
