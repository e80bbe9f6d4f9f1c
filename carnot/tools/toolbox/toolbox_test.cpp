#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/check.h"
#include "carnot/core/env/tool.h"

namespace carnot {
namespace {

class Echo : public Tool {
 public:
  explicit Echo(std::string name) : description_{.name = std::move(name), .description = "Says \"it\" again."} {}
  const ToolDescription& description() const override { return description_; }
  ToolResult call(std::string_view arguments, Deadline) override { return {.text = std::string(arguments)}; }

 private:
  ToolDescription description_;
};

ToolResult call(std::string_view name, std::string_view arguments) {
  const ToolSet tools({std::make_shared<Echo>("echo"), std::make_shared<Echo>("echo-2")});
  return tools.call(name, arguments, Tool::Deadline::max());
}

TEST(Tool, IsDescribedAsChatTemplatesTakeIt) {
  const ToolDescription tool{.name = "look_up",
                             .description = "a \"word\"",
                             .parameters = R"({"type": "object", "properties": {"b": {}, "a": {}}})"};
  EXPECT_EQ(
      tool.json(),
      "{\"type\":\"function\",\"function\":{\"name\":\"look_up\",\"description\":\"a \\\"word\\\"\",\"parameters\":"
      "{\"type\":\"object\",\"properties\":{\"b\":{},\"a\":{}}}}}")
      << "the schema's keys stay in their order";
}

TEST(Tool, NamesAndSchemasAreChecked) {
  EXPECT_TRUE(ToolDescription{.name = "a-B_9"}.check().ok());
  for (const std::string name : {"", "a b", "a.b", "\u00e4"})
    EXPECT_FALSE(ToolDescription{.name = name}.check().ok()) << name;
  const Status schema = ToolDescription{.name = "a", .parameters = "[1]"}.check();
  ASSERT_FALSE(schema.ok());
  EXPECT_NE(schema.error().message.find("parameters of tool a"), std::string::npos) << schema.error().message;
}

TEST(ToolSet, CallsByNameAndAnswersWhatMakesNoSense) {
  EXPECT_EQ(call("echo-2", "{\"x\": 1}").text, "{\"x\": 1}");
  EXPECT_EQ(call("echo", "{}").status, "ok");
  const ToolResult unknown = call("eco", "{}");
  EXPECT_EQ(unknown.status, "unknown_tool");
  EXPECT_EQ(unknown.text, "no tool eco; there is: echo, echo-2");
  EXPECT_EQ(call("echo", "[1]").status, "bad_arguments");
  EXPECT_EQ(call("echo", "{\"x\"").status, "bad_arguments");
}

TEST(ToolSet, HasEachNameOnce) {
  EXPECT_THROW(ToolSet({std::make_shared<Echo>("echo"), std::make_shared<Echo>("echo")}), CheckError);
}

}  // namespace
}  // namespace carnot
