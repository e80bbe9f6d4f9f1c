// hf/gguf_model.h -- the model in a GGUF file: its shape, and which tensor is which weight. No LibTorch.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/file.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// The shape that the metadata gives; its special tokens are the tokenizer's to fill in. llama (Mistral's models are
/// stored as such), qwen2 and qwen3. Refuses what is not computed, all of it at once: a key of the architecture that is
/// not known here, too, since it could change the arithmetic.
Result<ModelConfig> gguf_model_config(const GgufFile& file, const std::string& name);

/// A weight under Hugging Face's name.
struct GgufWeight {
  std::string name{};
  const GgufTensor* stored = nullptr;
  /// Above 0: the rows are those of this many heads, and within each the two halves that rotary positions combine
  /// alternate row by row; Hugging Face has one half behind the other.
  int interleaved_heads = 0;
};

/// In the order of the model's layers. Missing, misshapen and surplus tensors are listed. `file` must outlive the
/// result.
Result<std::vector<GgufWeight>> gguf_weights(const GgufFile& file, const ModelConfig& config, const std::string& name);

}  // namespace carnot
