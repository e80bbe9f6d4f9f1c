// text/tool_calls.h -- calls of functions as models write them in JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"

namespace carnot {

/// A call `{"name": ..., KEY: {...}}`; KEY holds the arguments ("arguments", "parameters"), an object or a string with
/// one; without KEY the call has none. Arguments come back as one line of JSON, keys in their order.
Result<ToolCall> parse_tool_call(std::string_view json, std::string_view arguments_key);

/// A list of such calls, not empty. An "id" is kept: formats that write lists have one.
Result<std::vector<ToolCall>> parse_tool_call_list(std::string_view json, std::string_view arguments_key);

}  // namespace carnot
