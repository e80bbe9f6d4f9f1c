// base/json.h -- the one place where JSON text from outside becomes values, within the limits of base/limits.h.
//
// Included by sources only: it brings nlohmann/json. `AnyJson` below is one of the two types that it defines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "carnot/base/limits.h"
#include "carnot/base/result.h"

namespace carnot {

using Json = nlohmann::json;                 ///< its keys are sorted
using OrderedJson = nlohmann::ordered_json;  ///< keeps the order of the keys

/// What one JSON text may have.
struct JsonLimits {
  std::size_t bytes = kMaxJsonBytes;
  std::size_t values = kMaxJsonValues;
  std::size_t depth = kMaxJsonDepth;
};

/// Parses `text`. Refuses, after `where`: what is not JSON, with the byte and the reason; text that is too
/// long, nests too deep or has too many values; an object with one key twice. Takes n log n for any text.
template <class AnyJson = Json>
Result<AnyJson> parse_json(std::string_view text, const std::string& where, const JsonLimits& limits = {});

/// The same for a text that must be an object.
template <class AnyJson = Json>
Result<AnyJson> parse_json_object(std::string_view text, const std::string& where);

/// `value` in a message: its JSON text, cut where it is long; of arrays and objects only the size.
std::string shown(const Json& value);

extern template Result<Json> parse_json(std::string_view, const std::string&, const JsonLimits&);
extern template Result<OrderedJson> parse_json(std::string_view, const std::string&, const JsonLimits&);
extern template Result<Json> parse_json_object(std::string_view, const std::string&);
extern template Result<OrderedJson> parse_json_object(std::string_view, const std::string&);

}  // namespace carnot
