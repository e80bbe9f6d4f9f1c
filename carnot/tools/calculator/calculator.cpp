#include "carnot/core/base/json.h"
#include "carnot/tools/calculator/expression.h"
#include "carnot/tools/toolbox/toolbox.h"

namespace carnot {
namespace {

class Calculator final : public Tool {
 public:
  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline) override {
    const auto given = parse_json_object(arguments, "arguments").value();
    const auto value = calculate(given.at("expression").get<std::string>());
    if (!value) return {.text = "Error: " + value.error().message, .status = "error"};
    return {.text = exact_text(*value)};
  }

 private:
  ToolDescription description_{
      .name = "calculator",
      .description = "Evaluates an arithmetic expression, such as \"(3 + 4) * 2 / 1.5\". Also: // % ** pi e " +
                     calculator_functions() + ".",
      .parameters = R"({"type": "object", "properties": {"expression": {"type": "string", )"
                    R"("description": "the expression"}}, "required": ["expression"]})"};
};

}  // namespace

std::unique_ptr<ToolKind> make_calculator_kind() {
  return each_entry([](const std::string&) { return Result<std::shared_ptr<Tool>>(std::make_shared<Calculator>()); });
}

}  // namespace carnot
