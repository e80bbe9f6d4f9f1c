#include "carnot/core/base/json_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<JsonSchema> schema(const std::string& text) {
  return JsonSchema::compile(parse_json(text, "schema").value(), "my schema");
}

std::vector<std::string> problems(const std::string& of, const std::string& value) {
  return schema(of).value().problems(parse_json(value, "value").value());
}

TEST(JsonSchema, ReportsEveryProblemWithItsPlace) {
  const std::string of = R"({"type": "object", "required": ["city"], "properties": {
      "city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}}})";
  EXPECT_THAT(problems(of, R"({"city": "Lima", "days": [1, 2]})"), IsEmpty());
  EXPECT_THAT(problems(of, R"({"days": [1, "two"]})"),
              ::testing::AllOf(::testing::Contains(HasSubstr("days[1]: ")), ::testing::Contains(HasSubstr("city"))));
  EXPECT_TRUE(schema(of).value().fits(parse_json(R"({"city": "Lima"})", "").value()));
  EXPECT_FALSE(schema(of).value().fits(parse_json("{}", "").value()));
}

TEST(JsonSchema, FollowsReferencesWithinItself) {
  const std::string of = R"({"properties": {"a": {"$ref": "#/$defs/word"}}, "$defs": {"word": {"enum": ["x", "y"]}}})";
  EXPECT_THAT(problems(of, R"({"a": "x"})"), IsEmpty());
  EXPECT_THAT(problems(of, R"({"a": "z"})"), ::testing::Contains(HasSubstr("a: ")));
}

TEST(JsonSchema, MayDescribeATree) {
  const std::string of = R"({"type": "object", "properties": {"of": {"$ref": "#"}}, "additionalProperties": false})";
  EXPECT_THAT(problems(of, R"({"of": {"of": {}}})"), IsEmpty());
  EXPECT_FALSE(problems(of, R"({"of": {"of": {"a": 1}}})").empty());
}

TEST(JsonSchema, IsRefusedByNameIfInvalid) {
  for (const char* wrong : {R"({"type": 5})", R"({"properties": [1]})", R"({"$ref": "http://example.org/a.json"})",
                            R"({"$ref": "#"})", R"({"items": {"$ref": "#/a"}, "a": {"$ref": "#/items"}})"}) {
    const auto made = schema(wrong);
    ASSERT_FALSE(made.ok()) << wrong;
    EXPECT_THAT(made.error().message, HasSubstr("my schema: not a JSON schema: "));
  }
}

}  // namespace
}  // namespace carnot
