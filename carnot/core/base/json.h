// base/json.h -- the one place where JSON text from outside becomes values, within the limits of base/limits.h.
//
// Include it in sources only: it includes nlohmann/json. `AnyJson` below is one of the two types that it defines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/result.h"

namespace carnot {

using Json = nlohmann::json;                 ///< sorts its keys
using OrderedJson = nlohmann::ordered_json;  ///< keeps the order of the keys

/// Limits of one JSON text.
struct JsonLimits {
  std::size_t bytes = kMaxJsonBytes;
  std::size_t values = kMaxJsonValues;
  std::size_t depth = kMaxJsonDepth;
};

/// Parses `text`. Errors begin with `where`. Refused are: invalid JSON, with the byte and the reason; text that is too
/// long, too deeply nested or has too many values; an object with a duplicate key. Takes O(n log n) for any input.
template <class AnyJson = Json>
Result<AnyJson> parse_json(std::string_view text, const std::string& where, const JsonLimits& limits = {});

/// The same for text that must be an object.
template <class AnyJson = Json>
Result<AnyJson> parse_json_object(std::string_view text, const std::string& where);

/// `value` on one line; bytes that are not UTF-8 become U+FFFD.
template <class AnyJson>
std::string json_line(const AnyJson& value) {
  return value.dump(-1, ' ', false, AnyJson::error_handler_t::replace);
}

/// `value` for use in a message: its JSON text, shortened if long; for arrays and objects, only their size.
std::string shown(const Json& value);

extern template Result<Json> parse_json(std::string_view, const std::string&, const JsonLimits&);
extern template Result<OrderedJson> parse_json(std::string_view, const std::string&, const JsonLimits&);
extern template Result<Json> parse_json_object(std::string_view, const std::string&);
extern template Result<OrderedJson> parse_json_object(std::string_view, const std::string&);

}  // namespace carnot
