// gguf/tokenizer.h -- the tokenizer in a GGUF file's metadata as the files of a Hugging Face folder.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/metadata.h"

namespace carnot {

struct GgufTokenizer {
  std::string tokenizer_json{};
  std::string tokenizer_config_json{};  ///< special tokens and chat template
  int num_tokens = 0;
  int bos_token = -1;  ///< -1: none
  int pad_token = -1;
  std::vector<int> eos_tokens{};     ///< any of them ends a text
  std::vector<std::string> notes{};  ///< what was guessed, or is not taken over; a sentence each
};

/// Byte-level BPE whose pre-tokenizer is known here, or SentencePiece's BPE. The result can be read by Tokenizer
/// (text/tokenizer.h). `context` is for tokenizer_config.json.
Result<GgufTokenizer> read_gguf_tokenizer(const GgufFile& file, std::int64_t context, const std::string& name);

}  // namespace carnot
