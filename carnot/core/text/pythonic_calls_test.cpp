#include "carnot/core/text/pythonic_calls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/limits.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

/// The arguments of f(x=VALUE), or what is wrong.
std::string read_value(const std::string& value) {
  const auto read = read_pythonic_calls("f(x=" + value + ")", false);
  return read ? read->calls.at(0).arguments : read.error().message;
}

TEST(PythonicCalls, ValuesAreThoseOfPythonAndOfJson) {
  EXPECT_EQ(read_value("'a'"), R"({"x": "a"})");
  EXPECT_EQ(read_value(R"("it's")"), R"({"x": "it's"})");
  EXPECT_EQ(read_value(R"('it\'s \"so\"')"), R"({"x": "it's \"so\""})");
  EXPECT_EQ(read_value("-2.5e3"), R"({"x": -2500.0})");
  EXPECT_EQ(read_value("12"), R"({"x": 12})");
  EXPECT_EQ(read_value(" [True, False , None,]"), R"({"x": [true, false, null]})");
  EXPECT_EQ(read_value("[true,false,null]"), R"({"x": [true, false, null]})");
  EXPECT_EQ(read_value("{'a': {\"b\": []}, 'c': 1,}"), R"({"x": {"a": {"b": []}, "c": 1}})");
}

TEST(PythonicCalls, StringsHaveTheEscapesOfPythonAndThePairsOfJson) {
  EXPECT_EQ(read_value(R"('\n\t\\\x41\u00e9\U0001F600')"), "{\"x\": \"\\n\\t\\\\A\u00e9\U0001F600\"}");
  EXPECT_EQ(read_value(R"("\ud83d\ude00")"), "{\"x\": \"\U0001F600\"}");
  EXPECT_EQ(read_value(R"('\d+ \(')"), R"({"x": "\\d+ \\("})");
  EXPECT_EQ(read_value("'two\nlines'"), R"({"x": "two\nlines"})");
}

TEST(PythonicCalls, SeveralFollowEachOtherAndTheRestIsLeft) {
  const std::string lines = " look_up(word='a', limit = 2)\nos.path-of()\n</function_calls>";
  const auto read = read_pythonic_calls(lines, false).value();
  EXPECT_EQ(read.calls, (std::vector<ToolCall>{{.name = "look_up", .arguments = R"({"word": "a", "limit": 2})"},
                                               {.name = "os.path-of"}}));
  EXPECT_EQ(lines.substr(read.end), "\n</function_calls>");
  const std::string list = "[a(), b()]c";
  const auto in_brackets = read_pythonic_calls(list, true).value();
  EXPECT_EQ(in_brackets.calls.size(), 2u);
  EXPECT_EQ(list.substr(in_brackets.end), "c");
}

TEST(PythonicCalls, WhatIsWrongIsSaidWithItsByte) {
  const auto problem = [](const std::string& text) { return read_pythonic_calls(text, false).error().message; };
  EXPECT_EQ(problem(""), "this tool call cannot be read: expected the name of a function (byte 0 of the calls)");
  EXPECT_THAT(problem("f"), HasSubstr("expected ( (byte 1"));
  EXPECT_THAT(problem("f("), HasSubstr("expected an argument as name=value (byte 2"));
  EXPECT_THAT(problem("f('a')"), HasSubstr("expected an argument as name=value (byte 2"));
  EXPECT_THAT(problem("f(2)"), HasSubstr("expected an argument as name=value"));
  EXPECT_THAT(problem("f(x=1 y=2)"), HasSubstr("expected a comma or ) (byte 6"));
  EXPECT_THAT(problem("f(x=1, x=2)"), HasSubstr("argument 'x' is given twice"));
  EXPECT_THAT(problem("f(x=word)"), HasSubstr("expected a string, number, True, False, None, list or dict (byte 4"));
  EXPECT_THAT(problem("f(x=g(y=1))"), HasSubstr("expected a string, number"));
  EXPECT_THAT(problem("f(x=1.)"), HasSubstr("expected a number as in JSON (byte 4"));
  EXPECT_THAT(problem("f(x=007)"), HasSubstr("expected a number as in JSON"));
  EXPECT_THAT(problem("f(x=1e999)"), HasSubstr("expected a number as in JSON"));
  EXPECT_THAT(problem("f(x='a)"), HasSubstr("expected ' (byte 7"));
  EXPECT_THAT(problem("f(x='a\\')"), HasSubstr("expected ' (byte"));
  EXPECT_THAT(problem("f(x='\\u12')"), HasSubstr("expected the digits of a character"));
  EXPECT_THAT(problem("f(x='\\ud800')"), HasSubstr("expected a character"));
  EXPECT_THAT(problem("f(x='\\ud800\\u0041')"), HasSubstr("expected the second half of a character"));
  EXPECT_THAT(problem("f(x='\\U00110000')"), HasSubstr("expected a character"));
  EXPECT_THAT(problem("f(x=[1 2])"), HasSubstr("expected a comma or ] (byte 7"));
  EXPECT_THAT(problem("f(x={1: 2})"), HasSubstr("expected a string as key (byte 5"));
  EXPECT_THAT(problem("f(x={'a' 2})"), HasSubstr("expected : (byte 9"));
  EXPECT_THAT(problem("f(x={'a': 1, 'a': 2})"), HasSubstr("key 'a' is given twice"));
}

TEST(PythonicCalls, NestingIsLimited) {
  const auto nested = [](std::size_t depth) {
    return read_pythonic_calls("f(x=" + std::string(depth, '[') + std::string(depth, ']') + ")", false);
  };
  for (std::size_t depth = 1; depth < kMaxJsonDepth; ++depth) EXPECT_TRUE(nested(depth).ok()) << depth;
  for (const std::size_t depth : {kMaxJsonDepth, kMaxJsonDepth + 1})
    EXPECT_THAT(nested(depth).error().message, HasSubstr("its values nest too deeply"));
  EXPECT_FALSE(nested(100000).ok());
}

TEST(PythonicCalls, AreWrittenWithValuesOfJsonOrOfPython) {
  const ToolCall call{.name = "f", .arguments = R"({"a": "it's\n\\ \"x\"", "b": [true, "c"], "d": null, "e": false})"};
  EXPECT_EQ(pythonic_call(call, PythonicValues::Json), R"(f(a="it's\n\\ \"x\"", b=[true, "c"], d=null, e=false))");
  EXPECT_EQ(pythonic_call(call, PythonicValues::Python), R"(f(a='it\'s\n\\ "x"', b=[true, "c"], d=None, e=False))");
  EXPECT_EQ(pythonic_call({.name = "wait"}, PythonicValues::Python), "wait()");
}

}  // namespace
}  // namespace carnot
