// env/checked_tool.h -- a tool whose arguments are compared with its schema before it is called.
#pragma once

#include <memory>

#include "carnot/core/base/json_schema.h"
#include "carnot/core/env/tool.h"

namespace carnot {

/// The schema of a tool's arguments, without its regular expressions: those are left to the tool. The error says what
/// is wrong with name or schema.
Result<std::shared_ptr<const JsonSchema>> arguments_schema(const ToolDescription& tool);

/// Calls `tool` where the arguments fit the schema, and answers with status "bad_arguments" and what is wrong where
/// they do not.
std::shared_ptr<Tool> checked(std::shared_ptr<Tool> tool, std::shared_ptr<const JsonSchema> schema);

}  // namespace carnot
