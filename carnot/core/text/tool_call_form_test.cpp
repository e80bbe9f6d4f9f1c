#include "carnot/core/text/tool_call_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/text/spaced_json.h"
#include "testing/random_text.h"
#include "testing/trials.h"

namespace carnot {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

struct Written {
  std::string name{};
  const ToolCallForm& (*form)() = nullptr;
  bool ids = false;
  bool content = true;  ///< text beside calls is written
};

const std::vector<Written>& forms() {
  static const std::vector<Written> all = {
      {.name = "tagged", .form = tagged_tool_calls},
      {.name = "bare", .form = bare_tool_call, .content = false},
      {.name = "listed", .form = listed_tool_calls, .ids = true, .content = false},
      {.name = "spaced_listed", .form = spaced_listed_tool_calls, .ids = true, .content = false},
      {.name = "granite", .form = granite_tool_calls},
      {.name = "phi", .form = phi_tool_calls},
      {.name = "named", .form = named_tool_calls},
      {.name = "named_with_ids", .form = named_tool_calls_with_ids, .ids = true, .content = false},
      {.name = "parameters", .form = parameter_tool_calls},
      {.name = "json_parameters", .form = json_parameter_tool_calls},
      {.name = "olmo", .form = olmo_tool_calls},
      {.name = "lfm", .form = lfm_tool_calls}};
  return all;
}

std::string random_name(RandomStream& random) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz_";
  std::string name;
  while (name.size() < 4 + random.below(5)) name += kLetters[random.below(kLetters.size())];
  return name;
}

std::string random_string(RandomStream& random) {
  constexpr std::string_view kSpecial[] = {"\"", "'", "\\", "\n", "\\n", "\t", "True", "7", "null", "(", "]", ", b=2"};
  std::string text;
  for (std::uint64_t part = random.below(4); part > 0; --part)
    text += random.chance(0.5) ? std::string(kSpecial[random.below(std::size(kSpecial))])
                               : testing::random_unicode(random, 5);
  return text;
}

ordered_json random_value(RandomStream& random, int depth) {
  const std::uint64_t kind = random.below(depth > 2 ? 5 : 7);
  if (kind == 0) return random_string(random);
  if (kind == 1) return static_cast<std::int64_t>(random.below(2000)) - 1000;
  if (kind == 2) return random.uniform() * 100 - 50;
  if (kind == 3) return random.chance(0.5);
  if (kind == 4) return nullptr;
  ordered_json made = kind == 5 ? ordered_json::array() : ordered_json::object();
  for (std::uint64_t i = random.below(4); i > 0; --i)
    if (kind == 5)
      made.push_back(random_value(random, depth + 1));
    else
      made[random_string(random)] = random_value(random, depth + 1);
  return made;
}

const char* type_of(const ordered_json& value) {
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  return value.is_number_integer() ? "integer" : "number";
}

/// A call, and the function that it calls.
std::pair<ToolCall, std::string> random_call(RandomStream& random, bool has_id) {
  ordered_json arguments = ordered_json::object(), properties = ordered_json::object();
  for (std::uint64_t i = random.below(4); i > 0; --i) {
    const std::string key = random_name(random);
    arguments[key] = random_value(random, 0);
    properties[key] = {{"type", type_of(arguments[key])}};
  }
  ToolCall call{.name = random_name(random), .arguments = spaced_json(arguments.dump())};
  if (has_id) call.id = "abcdef" + std::to_string(100 + random.below(900));
  const ordered_json tool = {
      {"type", "function"},
      {"function", {{"name", call.name}, {"parameters", {{"type", "object"}, {"properties", properties}}}}}};
  return {call, tool.dump()};
}

class EachForm : public ::testing::TestWithParam<Written> {};
INSTANTIATE_TEST_SUITE_P(Written, EachForm, ::testing::ValuesIn(forms()),
                         [](const auto& info) { return info.param.name; });

TEST_P(EachForm, ReadsWhatItWritesAndNoBeginningOfItAsSomethingElse) {
  const ToolCallForm& form = GetParam().form();
  RandomStream random(23);
  for (int trial = 0; trial < testing::trials(40); ++trial) {
    const std::string content = random.chance(0.5) ? testing::random_unicode(random, 6) + "." : "";
    std::vector<ToolCall> calls;
    std::vector<std::string> tools;
    do {
      auto [call, tool] = random_call(random, GetParam().ids);
      calls.push_back(std::move(call));
      tools.push_back(std::move(tool));
    } while (!form.has_one_call() && random.chance(0.4));
    const std::string text = form.text_of(content, calls);
    const auto read = form.parse(text, tools);
    ASSERT_TRUE(read.ok()) << read.error().message << "\n" << text;
    ASSERT_EQ(*read, calls) << text;
    ASSERT_EQ(form.beside(text), GetParam().content ? content : "");
    for (std::size_t bytes = 0; bytes < text.size(); bytes += 1 + random.below(3)) {
      const auto cut = form.parse(std::string_view(text).substr(0, bytes), tools);
      if (!cut) continue;
      ASSERT_LE(cut->size(), calls.size());
      ASSERT_TRUE(std::equal(cut->begin(), cut->end(), calls.begin())) << text.substr(0, bytes);
    }
  }
}

TEST_P(EachForm, ReadsNoCallInOrdinaryText) {
  for (const std::string text :
       {"", "Up.", "{\"moves\": 3}", "look_up(word=\"x\")", "[1, 2]", "tool_call", "<function=x>"})
    EXPECT_EQ(GetParam().form().parse(text, {}).value(), std::vector<ToolCall>{}) << text;
}

struct Malformed {
  const ToolCallForm& (*form)() = nullptr;
  std::string text{}, problem{};
};

TEST(ToolCallForm, WhatIsWrongWithACallIsSaid) {
  const std::vector<Malformed> all = {
      {tagged_tool_calls, "<tool_call>\n{\"name\": \"a\"}", "</tool_call> is missing"},
      {tagged_tool_calls, "<tool_call>[1]</tool_call>", "it is no JSON object"},
      {tagged_tool_calls, "<tool_call>{\"name\": 1}</tool_call>", "it has no \"name\""},
      {granite_tool_calls, "<|tool_call|>{\"name\": \"a\"}", "it is no list of calls"},
      {granite_tool_calls, "<|tool_call|>[]", "it is no list of calls"},
      {granite_tool_calls, "<|tool_call|>[{\"name\": \"a\", \"arguments\": 3}]", "its arguments are no JSON object"},
      {phi_tool_calls, "<|tool_call|><|/tool_call|>", "the list of calls"},
      {phi_tool_calls, "<|tool_call|>[{\"name\": \"a\"}<|/tool_call|>", "the list of calls"},
      {named_tool_calls, "[TOOL_CALLS]look_up{\"word\": 1}", "[ARGS] is missing after its name"},
      {named_tool_calls, "[TOOL_CALLS][ARGS]{}", "it has no name"},
      {named_tool_calls, "[TOOL_CALLS]look_up[ARGS][1]", "the arguments"},
      {named_tool_calls, "[TOOL_CALLS]look_up[ARGS]", "the arguments"},
      {named_tool_calls, "[TOOL_CALLS]a[ARGS]{\"b\": 1, \"b\": 2}", "the arguments"},
      {named_tool_calls_with_ids, "[TOOL_CALLS][CALL_ID]abcdef123[ARGS]{}", "it has no name"},
      {parameter_tool_calls, "<tool_call>{\"name\": \"a\"}</tool_call>", "<function=name> does not follow <tool_call>"},
      {parameter_tool_calls, "<tool_call><function=></function></tool_call>", "<function= does not have a name and >"},
      {parameter_tool_calls, "<tool_call><function=a\n<parameter=b>", "<function= does not have a name and >"},
      {parameter_tool_calls, "<tool_call><function=a><parameter=></parameter>",
       "<parameter= does not have a name and >"},
      {parameter_tool_calls, "<tool_call><function=a><parameter=b>1", "</parameter> of 'b' is missing"},
      {parameter_tool_calls, "<tool_call><function=a>b</function></tool_call>",
       "</function> does not follow the last parameter"},
      {parameter_tool_calls, "<tool_call><function=a></function>", "</tool_call> does not follow </function>"},
      {parameter_tool_calls,
       "<tool_call><function=a><parameter=b>1</parameter><parameter=b>2</parameter></function></tool_call>",
       "parameter 'b' is given twice"},
      {olmo_tool_calls, "<function_calls></function_calls>", "expected the name of a function (byte 0 of the calls)"},
      {olmo_tool_calls, "<function_calls>a()", "</function_calls> does not follow the last call"},
      {olmo_tool_calls, "<function_calls>a() b()</function_calls>", "</function_calls> does not follow the last call"},
      {lfm_tool_calls, "<|tool_call_start|>a()<|tool_call_end|>", "expected [ (byte 0 of the calls)"},
      {lfm_tool_calls, "<|tool_call_start|>[a()\nb()]<|tool_call_end|>", "expected ] or a comma (byte 5"},
      {lfm_tool_calls, "<|tool_call_start|>[a()]", "<|tool_call_end|> does not follow the last call"},
  };
  for (const Malformed& one : all) {
    const auto read = one.form().parse(one.text, {});
    ASSERT_FALSE(read.ok()) << one.text;
    EXPECT_THAT(read.error().message, HasSubstr("this tool call cannot be read: ")) << one.text;
    EXPECT_THAT(read.error().message, HasSubstr(one.problem)) << one.text;
  }
}

TEST(ToolCallForm, PhisClosingTokenMayBeMissingAndTextBehindItIsNoCall) {
  const std::string list = R"(<|tool_call|>[{"name": "wait", "arguments": {}}])";
  for (const std::string& text : {list, list + "<|/tool_call|>", list + "\n<|/tool_call|>\nI wait."})
    EXPECT_EQ(phi_tool_calls().parse(text, {}).value(), std::vector<ToolCall>{{.name = "wait"}}) << text;
}

// ---- values that a schema types

std::string typed(const std::string& schema, const std::string& value) {
  const std::vector<std::string> tools = {
      R"({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"x": )" +
      schema + "}}}}"};
  const auto read = parameter_tool_calls().parse(
      "<tool_call>\n<function=f>\n<parameter=x>\n" + value + "\n</parameter>\n</function>\n</tool_call>", tools);
  return read ? read->at(0).arguments : read.error().message;
}

TEST(ParameterCalls, ValuesAreWhatTheSchemaSaysTheyAre) {
  EXPECT_EQ(typed(R"({"type": "string"})", "2"), R"({"x": "2"})");
  EXPECT_EQ(typed(R"({"type": "string"})", "\n a\n\n"), R"({"x": "\n a\n\n"})");
  EXPECT_EQ(typed(R"({"type": "integer"})", "2"), R"({"x": 2})");
  EXPECT_EQ(typed(R"({"type": "number"})", " 2.5 "), R"({"x": 2.5})");
  EXPECT_EQ(typed(R"({"type": "boolean"})", "False"), R"({"x": false})");
  EXPECT_EQ(typed(R"({"type": "boolean"})", "false"), R"({"x": false})");
  EXPECT_EQ(typed(R"({"type": ["string", "null"]})", "None"), R"({"x": null})");
  EXPECT_EQ(typed(R"({"type": ["string", "null"]})", "2"), R"({"x": "2"})");
  EXPECT_EQ(typed(R"({"anyOf": [{"type": "integer"}, {"type": "string"}]})", "2"), R"({"x": 2})");
  EXPECT_EQ(typed(R"({"anyOf": [{"type": "integer"}, {"type": "string"}]})", "two"), R"({"x": "two"})");
  EXPECT_EQ(typed(R"({"type": "array"})", R"(["a", 1])"), R"({"x": ["a", 1]})");
  EXPECT_EQ(typed("{}", R"({"a": 1})"), R"({"x": {"a": 1}})");
  EXPECT_EQ(typed("{}", "{ a }"), R"({"x": "{ a }"})");
  EXPECT_EQ(typed("{}", "\"a\""), R"({"x": "\"a\""})");
}

TEST(ParameterCalls, AValueOfAnotherTypeIsRefusedWithTheExpectedOne) {
  EXPECT_EQ(
      typed(R"({"type": "integer"})", "two"),
      "this tool call cannot be read: parameter 'x' is 'two'; expected integer, as the function's description says");
  EXPECT_THAT(typed(R"({"type": "integer"})", "2.5"), HasSubstr("expected integer"));
  EXPECT_THAT(typed(R"({"type": ["array", "object"]})", "[1"), HasSubstr("expected array or object"));
}

TEST(ParameterCalls, ToolsThatSayNothingAreNoHindrance) {
  const std::vector<std::string> tools = {"", "[]", R"({"function": 1})", R"({"function": {"name": "f"}})",
                                          R"({"function": {"name": "f", "parameters": {"properties": [1]}}})"};
  const auto read =
      parameter_tool_calls().parse("<tool_call><function=f><parameter=x>1</parameter></function></tool_call>", tools);
  EXPECT_EQ(read.value().at(0).arguments, R"({"x": 1})");
}

// ---- which form a prompt asks for

TEST(ToolCallForm, APromptAsksForTheFormWhoseMarksItHasOrElseTheTokenizer) {
  const std::vector<std::string> none, granite = {"<|tool_call|>"}, phi = {"<|tool_call|>", "<|/tool_call|>"};
  EXPECT_EQ(form_asked_for("respond with <tool_call></tool_call>", none), &tagged_tool_calls());
  EXPECT_EQ(form_asked_for("<tool_call>\n<function=f>\n</function>\n</tool_call>", none), &parameter_tool_calls());
  EXPECT_EQ(form_asked_for("within <function_calls></function_calls>", none), &olmo_tool_calls());
  EXPECT_EQ(form_asked_for("respond only with <|tool_call|>", none), &granite_tool_calls());
  EXPECT_EQ(form_asked_for("respond only with <|tool_call|>", phi), &granite_tool_calls());
  EXPECT_EQ(form_asked_for("", granite), &granite_tool_calls());
  EXPECT_EQ(form_asked_for("", phi), &phi_tool_calls());
  EXPECT_EQ(form_asked_for("respond with JSON", none), nullptr);
}

}  // namespace
}  // namespace carnot
