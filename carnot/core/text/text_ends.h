// text/text_ends.h -- what the post_processor of a tokenizer.json puts around a text.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace carnot {

/// Tokens, as added_tokens spells them.
struct TextEnds {
  std::vector<std::string> first{}, last{};
};

/// Of a single text; nothing where the post-processor does more than to put tokens around it.
std::optional<TextEnds> read_text_ends(const nlohmann::json& post_processor);

}  // namespace carnot
