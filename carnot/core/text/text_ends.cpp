#include "carnot/core/text/text_ends.h"

#include <algorithm>

#include "carnot/core/text/json_problems.h"

namespace carnot {
namespace {

/// False where a part does more.
bool add_ends(const Json& post_processor, TextEnds& ends) {
  const Json& type = member(post_processor, "type");
  if (post_processor.is_null() || type == "ByteLevel") return true;
  if (type == "Sequence") {
    const Json& parts = member(post_processor, "processors");
    return parts.is_array() &&
           std::all_of(parts.begin(), parts.end(), [&](const Json& part) { return add_ends(part, ends); });
  }
  const Json& single = member(post_processor, "single");
  if (type != "TemplateProcessing" || !single.is_array()) return false;
  bool is_behind = false;
  for (const Json& part : single) {
    const Json& token = member(member(part, "SpecialToken"), "id");
    if (token.is_string())
      (is_behind ? ends.last : ends.first).push_back(token.get<std::string>());
    else if (member(part, "Sequence").is_null() || is_behind)
      return false;
    else
      is_behind = true;
  }
  return is_behind;
}

}  // namespace

std::optional<TextEnds> read_text_ends(const Json& post_processor) {
  TextEnds ends;
  if (add_ends(post_processor, ends)) return ends;
  return std::nullopt;
}

}  // namespace carnot
