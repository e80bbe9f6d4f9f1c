// text/chat_families.h -- the table of chat formats: by name, and by the template that a model folder holds.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/text/chat.h"

namespace carnot {

/// The family of that name over a tokenizer, which must outlive it. An unknown name is answered with the known ones;
/// a tokenizer that lacks the family's tokens is refused with the missing ones named.
Result<std::unique_ptr<ChatFamily>> make_chat_family(std::string_view name, const Tokenizer& tokenizer);

/// The families, and the names of the one that a model folder's own template makes (text/template_chat.h).
std::vector<std::string> chat_family_names();

/// The family whose published Jinja template this is, recognised by text that only it contains; empty if unknown.
std::string_view chat_family_of_template(std::string_view jinja);

}  // namespace carnot
