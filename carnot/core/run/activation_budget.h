// run/activation_budget.h -- what forward and backward passes keep, in bytes, from the lower rooms' own rules. Internal
// to the room.
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "carnot/core/base/saturating.h"
#include "carnot/core/run/memory_budget.h"

namespace carnot {

/// Settings may be absurd, and nothing computed from them may come out small.
using Count = Saturating;

/// Of a number of this type.
Count value_bytes(const std::string& dtype);

/// ModelSizes that the parts are made of; numbers of values unless they say bytes.
struct ModelSizes {
  explicit ModelSizes(const MemorySettings& s);

  bool targets(Projection projection) const { return targeted[static_cast<std::size_t>(projection)]; }
  Count dense_layers() const { return layers - expert_layers; }
  Count attention_layers() const { return layers - convolutions - deltas; }
  /// Of the layers' MLPs, or of one expert.
  Count widest_inner() const {
    return std::max(dense_layers() > 0 ? inner : Count(0), expert_layers > 0 ? expert_inner : Count(0));
  }

  Count value, wide;  ///< bytes; of weights and activations, and of sums and gradients of weights
  bool own;           ///< Carnot's kernels run; LibTorch's operators otherwise
  Count hidden, inner, queries, keys, layers, head, parameters;
  Count convolutions;  ///< those of them with a short convolution in place of attention
  Count deltas;        ///< those of them with the gated delta rule
  Count delta_width, delta_values, delta_heads;
  Count gates;          ///< width of the gate of what attention returns
  Count expert_layers;  ///< those of them whose MLP is a mixture of experts
  Count experts, top_k, expert_inner;
  Count projections;
  Count norms;        ///< of a layer, over the residual stream's width
  Count outer_norms;  ///< those of them on results of attention and MLP
  Count whole_norms;  ///< width of queries and keys that are normalised over all heads
  std::array<bool, kProjectionNames.size()> targeted{};
  Count adapters = 0;
};

/// Of one forward and backward pass: what stays until the backward pass, and the most that comes and goes.
struct Activations {
  Count kept = 0, passing = 0;
};

/// Of `rows` rows in sequences of `length`. `trained`: weights, not adapters.
Activations activations(const MemorySettings& s, const ModelSizes& n, Count rows, Count length, bool trained);

/// Logits of a strip in float32 (LibTorch's operators hold five of them). For the gradient, Carnot's kernels pack the
/// head a second time; of bfloat16 they do so strip by strip.
Count statistics_bytes(const MemorySettings& s, const ModelSizes& n, bool with_gradient);

/// Rows without gradients: two residual streams next to the widest of a layer's results.
Count pass_bytes(const MemorySettings& s, const ModelSizes& n, Count rows, Count length);

}  // namespace carnot
