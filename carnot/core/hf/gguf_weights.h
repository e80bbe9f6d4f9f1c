// hf/gguf_weights.h -- which tensor of a GGUF file is which weight of a model, in both directions. No LibTorch.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/gguf/file.h"
#include "carnot/core/nn/model_config.h"

namespace carnot {

/// Heads of values that share keys: in the folder, those of one key are neighbours; in the GGUF file, the first of each
/// key come first, then the second of each.
struct TiledHeads {
  std::int64_t first = 0;  ///< index of the first head's first number; those before it have no other order
  std::int64_t keys = 1, heads_per_key = 1;
  std::int64_t size = 1;  ///< of a head
  /// What the file has at `index`.
  std::int64_t folder_index(std::int64_t index) const;
};

/// A tensor of a GGUF file, and the tensors of a Hugging Face folder that are in it: one, or one of each expert.
struct GgufWeightName {
  std::string stored{};               ///< in the GGUF file
  std::string name{};                 ///< in the folder, with '*' for an expert's number
  std::vector<std::int64_t> shape{};  ///< in the folder, of each
  int experts = 0;                    ///< above 0: those of so many experts, one behind the other
  /// Above 0: the rows are those of this many heads, and within each the two halves that rotary positions combine
  /// alternate row by row in the GGUF file; Hugging Face has one half after the other.
  int interleaved_heads = 0;
  TiledHeads tiled_rows{}, tiled_columns{};
  float added = 0;                    ///< to each of the folder's numbers, in float32
  bool negative_exponential = false;  ///< the file has -exp(x) of each of the folder's numbers x
  bool is_f32 = false;                ///< is stored in F32, as vectors are

  int parts() const { return std::max(experts, 1); }
  /// The name of a part in the folder.
  std::string part(int index) const;
  /// Without the middle one of three sizes, a convolution's 1.
  std::vector<std::int64_t> stored_shape() const;
  /// Rows of one part.
  std::int64_t rows() const { return shape.size() == 1 ? 1 : shape[0]; }
  /// The row of a part that is stored as its row `row`.
  std::int64_t folder_row(std::int64_t row) const;
  /// A number of the folder for one that is stored, and back.
  float folder_number(float stored) const;
  float stored_number(float number) const;
};

/// All weights of such a model, in the order of its layers. REQUIRES: a family of hf/gguf_architecture.h.
std::vector<GgufWeightName> gguf_weight_names(const ModelConfig& config);

struct GgufWeight {
  GgufWeightName name{};
  const GgufTensor* tensor = nullptr;
};

/// The weights in `file`, without layers that predict tokens after the next one. Missing, misshapen and surplus tensors
/// are listed. `file` must outlive the result.
Result<std::vector<GgufWeight>> gguf_weights(const GgufFile& file, const ModelConfig& config, const std::string& name);

}  // namespace carnot
