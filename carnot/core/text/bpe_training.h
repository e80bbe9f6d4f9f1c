// text/bpe_training.h -- trains a small byte-level BPE tokenizer.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct BpeTrainingOptions {
  int vocab_size = 512;                     ///< of the byte-level vocabulary and merges, added tokens included
  std::vector<std::string> added_tokens{};  ///< special tokens, in order, ids from 0
  std::vector<std::string>
      protected_words{};  ///< each becomes one token with and without a blank before it, whatever its frequency
};

/// Trains a byte-level BPE (NFC, Qwen2's pattern) and returns the text of a tokenizer.json that Hugging Face
/// `tokenizers` loads. Ids: the added tokens, the 256 bytes, the protected words (bare, then with a blank), the merged
/// tokens in the order of their merges; fewer than vocab_size where no pair occurs twice any more. Added tokens of the
/// form <|...|> are marked special. Deterministic: ties between pairs go to the smaller pair of ids.
/// Refuses a vocab_size that is too small, added tokens that are empty, repeated or a single byte, and protected words
/// that the pattern does not yield as one piece with and without a blank (expected: letters, or a digit, which the
/// pattern always takes by itself). The pattern takes one other character before a word into its piece: a protected
/// word right after it ("\n(word") is spelled by merges.
Result<std::string> train_byte_level_bpe(std::span<const std::string> texts, const BpeTrainingOptions& options);

}  // namespace carnot
