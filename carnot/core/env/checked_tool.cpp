#include "carnot/core/env/checked_tool.h"

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

class CheckedTool final : public Tool {
 public:
  CheckedTool(std::shared_ptr<Tool> tool, std::shared_ptr<const JsonSchema> schema)
      : tool_(std::move(tool)), schema_(std::move(schema)) {}

  const ToolDescription& description() const override { return tool_->description(); }

  ToolResult call(std::string_view arguments, Deadline deadline) override {
    const auto given = parse_json_object(arguments, "arguments");
    if (!given) return {.text = "Error: " + given.error().message, .status = "bad_arguments"};
    const auto problems = schema_->problems(*given);
    if (problems.empty()) return tool_->call(arguments, deadline);
    return {.text = "Error: the arguments of " + description().name + " do not fit: " + join(problems, " "),
            .status = "bad_arguments"};
  }

 private:
  std::shared_ptr<Tool> tool_;
  std::shared_ptr<const JsonSchema> schema_;
};

/// Without what is matched by std::regex, which needs stack for each character that a policy writes.
void remove_expressions(Json& schema) {
  if (schema.is_object()) {
    for (const char* key : {"pattern", "format"})
      if (const auto found = schema.find(key); found != schema.end() && found->is_string()) schema.erase(found);
    if (schema.erase("patternProperties") > 0) schema.erase("additionalProperties");
  }
  if (schema.is_structured())
    for (Json& part : schema) remove_expressions(part);
}

}  // namespace

Result<std::shared_ptr<const JsonSchema>> arguments_schema(const ToolDescription& tool) {
  CARNOT_RETURN_IF_ERROR(tool.check());
  const std::string where = "parameters of tool " + tool.name;
  Json schema = parse_json_object(tool.parameters, where).value();
  remove_expressions(schema);
  CARNOT_ASSIGN_OR_RETURN(auto compiled, JsonSchema::compile(schema, where));
  return std::shared_ptr<const JsonSchema>(std::make_shared<JsonSchema>(std::move(compiled)));
}

std::shared_ptr<Tool> checked(std::shared_ptr<Tool> tool, std::shared_ptr<const JsonSchema> schema) {
  return std::make_shared<CheckedTool>(std::move(tool), std::move(schema));
}

}  // namespace carnot
