#include "carnot/core/env/tool.h"

#include <algorithm>
#include <set>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

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

std::string ToolDescription::json() const {
  const OrderedJson schema = parse_json_object<OrderedJson>(parameters, name + ".parameters").value();
  const OrderedJson function{{"name", name}, {"description", description}, {"parameters", schema}};
  return json_line(OrderedJson{{"type", "function"}, {"function", function}});
}

Status ToolDescription::check() const {
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_name_character))
    return Error{"a tool's name is \"" + name + "\"; expected letters, digits, '_' and '-'"};
  CARNOT_RETURN_IF_ERROR(parse_json_object(parameters, "parameters of tool " + name));
  return Done{};
}

ToolSet::ToolSet(std::vector<std::shared_ptr<Tool>> tools) : tools_(std::move(tools)) {
  std::set<std::string> names;
  for (const auto& tool : tools_) {
    const Status right = tool->description().check();
    CARNOT_CHECK(right.ok(), right.ok() ? "" : right.error().message);
    CARNOT_CHECK(names.insert(tool->description().name).second, "two tools " + tool->description().name);
  }
}

std::vector<ToolDescription> ToolSet::descriptions() const {
  std::vector<ToolDescription> all;
  for (const auto& tool : tools_) all.push_back(tool->description());
  return all;
}

ToolResult ToolSet::call(std::string_view name, std::string_view arguments, Tool::Deadline deadline) const {
  std::vector<std::string> names;
  for (const auto& tool : tools_) {
    names.push_back(tool->description().name);
    if (names.back() != name) continue;
    const auto object = parse_json_object(arguments, "arguments of " + names.back());
    if (!object) return {.text = object.error().message, .status = "bad_arguments"};
    return tool->call(arguments, deadline);
  }
  return {.text = "no tool " + std::string(name) + "; there is: " + join(names), .status = "unknown_tool"};
}

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
