// text/tokenizer_folder.h -- vocab.json and merges.txt, the older pair of files, as the text of a tokenizer.json.
#pragma once

#include <filesystem>
#include <string>

#include "carnot/core/base/result.h"

namespace carnot {

/// A tokenizer.json for a folder with vocab.json and merges.txt (each also as .xz). The normaliser and the pattern
/// are Qwen2's. Added tokens: added_tokens_decoder of tokenizer_config.json, or the list added_tokens (else
/// added_tokens_qwen2_5) of tokenizer_description.json, whose pre_tokenizer_regex counts as well; none without these.
Result<std::string> tokenizer_json_of_folder(const std::filesystem::path& folder);

}  // namespace carnot
