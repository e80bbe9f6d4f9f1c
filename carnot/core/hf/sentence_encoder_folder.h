// hf/sentence_encoder_folder.h -- a sentence encoder as sentence-transformers writes it: BERT's config.json, weights,
// vocab.txt, and how tokens are pooled.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/nn/sentence_encoder.h"
#include "carnot/core/text/word_piece.h"

namespace carnot {

struct SentenceEncoderFolder {
  SentenceEncoder encoder;
  WordPieceTokenizer tokenizer;
  std::string mark{};  ///< tells what it computes from what other folders compute
  int max_tokens = 0;  ///< of a text, [CLS] and [SEP] included; what is beyond is cut

  /// A vector of length 1 for each text, `batch` of them at a time, which changes no bit. Bytes that are no UTF-8 are
  /// passed over. One thread at a time; the work is shared by kernel_pool().
  std::vector<std::vector<float>> encode(std::span<const std::string> texts, std::size_t batch = 32) const;
  int dimensions() const { return encoder.config().hidden_size; }
};

/// Reads all of it, in float32. The error names what is missing, and what the folder asks for that is not computed
/// here: another pooling than the mean (1_Pooling/config.json), another activation than GELU, relative positions,
/// further modules (modules.json).
Result<SentenceEncoderFolder> load_sentence_encoder(const std::filesystem::path& folder);

}  // namespace carnot
