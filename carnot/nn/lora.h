// nn/lora.h -- low-rank adapters (LoRA, Hu et al. 2021): y = x W^T + alpha / rank (x A^T) B^T, where W stays as it is.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/fields.h"

namespace carnot {

/// The projections of a layer that an adapter can stand on.
enum class Projection : std::size_t { Query, Key, Value, Output, Gate, Up, Down };
inline constexpr std::array<std::string_view, 7> kProjectionNames = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                                     "gate_proj", "up_proj", "down_proj"};

/// `lora.*`
struct LoraOptions {
  int rank = 0;  ///< 0: no adapters, all weights are trained
  double alpha = 16;
  std::vector<std::string> targets{kProjectionNames.begin(), kProjectionNames.end()};

  double scale() const { return alpha / rank; }

  /// The same adapters; the order of the targets says nothing.
  bool operator==(const LoraOptions& other) const;

  void fields(FieldVisitor& visit);
};

/// One projection's adapter; undefined where it has none.
struct Adapter {
  at::Tensor a{};  ///< [rank, K]
  at::Tensor b{};  ///< [N, rank]
};

}  // namespace carnot
