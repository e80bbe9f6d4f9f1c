// hf/gguf_weights.h -- which tensor of a GGUF file is which weight of a model, in both directions. No LibTorch.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/file.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

struct GgufWeightName {
  std::string stored{};  ///< in the GGUF file
  std::string name{};    ///< in a Hugging Face folder
  std::vector<std::int64_t> shape{};
  /// Above 0: the rows are those of this many heads, and within each the two halves that rotary positions combine
  /// alternate row by row in the GGUF file; Hugging Face has one half after the other.
  int interleaved_heads = 0;

  /// The row of the folder's weight that is stored as row `row`.
  std::int64_t folder_row(std::int64_t row) const;
};

/// All weights of such a model, in the order of its layers.
std::vector<GgufWeightName> gguf_weight_names(const ModelConfig& config);

struct GgufWeight {
  GgufWeightName name{};
  const GgufTensor* tensor = nullptr;
};

/// The weights in `file`. Missing, misshapen and surplus tensors are listed. `file` must outlive the result.
Result<std::vector<GgufWeight>> gguf_weights(const GgufFile& file, const ModelConfig& config, const std::string& name);

}  // namespace carnot
