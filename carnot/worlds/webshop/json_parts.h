// worlds/webshop/json_parts.h -- the elements of a JSON array, or the members of an object, one at a time: for files
// that are too large to be one value in memory.
#pragma once

#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// Calls visit(text) with each element of the array that the stream holds, or with each member of the object, as
/// `{"key": value}`. The text is as it is there; it need not be JSON. Ends with visit's first error, or where the
/// stream holds neither, ends early, continues behind the closing bracket, or has a part beyond base/limits.h. `name`
/// is for messages.
Status for_each_json_part(std::istream& in, const std::string& name,
                          const std::function<Status(std::string_view)>& visit);

}  // namespace carnot
