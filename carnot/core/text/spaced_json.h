// text/spaced_json.h -- JSON as Python's json.dumps and the `tojson` of chat templates write it.
#pragma once

#include <string>
#include <string_view>

namespace carnot {

/// One line with a space after each comma and colon; keys stay in their order. REQUIRES: JSON.
std::string spaced_json(std::string_view json);

/// A JSON string, quotes included.
std::string quoted_json(std::string_view text);

/// The value of `key` in a JSON object, as one line; empty if it is missing. REQUIRES: a JSON object.
std::string json_member(std::string_view json, std::string_view key);

}  // namespace carnot
