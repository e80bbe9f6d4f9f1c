// nn/lora_options.h -- which projections get low-rank adapters, and of which rank. No LibTorch.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/fields.h"

namespace carnot {

/// The projections of a layer that can have an adapter: inputs of a short convolution or of the gated delta rule; those
/// of attention, whose output every mixer has; the MLP's.
enum class Projection : std::size_t { Input, InputZ, InputB, InputA, Query, Key, Value, Output, Gate, Up, Down };
inline constexpr std::array<std::string_view, 11> kProjectionNames = {
    "in_proj", "in_proj_z", "in_proj_b", "in_proj_a", "q_proj",   "k_proj",
    "v_proj",  "o_proj",    "gate_proj", "up_proj",   "down_proj"};
inline constexpr auto kFirstOfAttention = static_cast<std::ptrdiff_t>(Projection::Query);

/// `lora.*`
struct LoraOptions {
  int rank = 0;  ///< 0: no adapters; all weights are trained
  double alpha = 16;
  std::vector<std::string> targets{kProjectionNames.begin() + kFirstOfAttention,
                                   kProjectionNames.end()};  ///< all but those of inputs

  double scale() const { return alpha / rank; }

  /// Whether the adapters are the same; the order of the targets does not matter.
  bool operator==(const LoraOptions& other) const;

  void fields(FieldVisitor& visit);
};

}  // namespace carnot
