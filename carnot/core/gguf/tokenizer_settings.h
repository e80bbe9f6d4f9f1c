// gguf/tokenizer_settings.h -- the tokenizer of a Hugging Face folder as the keys of a GGUF file; gguf/tokenizer.h the
// other way round.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "carnot/core/gguf/writer.h"

namespace carnot {

struct FolderTokenizer {
  std::string json{};         ///< tokenizer.json
  std::string config_json{};  ///< tokenizer_config.json; empty: none. Its special tokens come before those below
  std::optional<std::string> chat_template{};
  int num_rows = 0;    ///< of the embedding; rows without a token are named as unused
  int bos_token = -1;  ///< -1: none
  int pad_token = -1;
  std::vector<int> eos_tokens{};  ///< any of them ends a message
};

/// Adds the keys to `settings`, and to `problems` what a GGUF file cannot say: another pre-tokenizer than those of
/// gguf/pre_tokenizers.h, say. Each problem begins with `name`.
void add_tokenizer(const FolderTokenizer& folder, const std::string& name, GgufSettings& settings,
                   std::vector<std::string>& problems);

}  // namespace carnot
