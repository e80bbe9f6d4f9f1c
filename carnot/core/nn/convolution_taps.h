// nn/convolution_taps.h -- which rows a causal convolution of each channel sums over. Internal to the room.
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <vector>

#include "carnot/core/nn/attention_plan.h"
#include "carnot/core/nn/model_config.h"
#include "carnot/core/nn/number_types.h"

namespace carnot {

inline constexpr std::int64_t kConvolvedRowsPerTask = 64;
inline constexpr std::int64_t kConvolvedChannelsPerTask = 64;

/// Of a table of rows, those that each row of the batch sums over, oldest first: [T, L]. The last is its own. -1: none.
using Taps = at::Tensor;

template <class RowOf>
void append_taps(int taps, int first, int end, const RowOf& row_of, std::vector<std::int64_t>& all) {
  for (int position = first; position < end; ++position)
    for (int back = taps - 1; back >= 0; --back) all.push_back(back > position ? -1 : row_of(position - back));
}

/// The batch's row of a position that a sequence has of its own or shares.
inline std::int64_t row_at(const PackedAttention& plan, int sequence, int position) {
  while (position < plan.past_of(sequence)) sequence = plan.parent(sequence);
  return plan.offsets[static_cast<std::size_t>(sequence)] + position - plan.past_of(sequence);
}

inline Taps taps_of(const PackedAttention& plan, int taps) {
  std::vector<std::int64_t> all;
  for (int s = 0; s < plan.num_sequences(); ++s) {
    const int rows = plan.offsets[static_cast<std::size_t>(s) + 1] - plan.offsets[static_cast<std::size_t>(s)];
    const auto row_of = [&](int position) { return row_at(plan, s, position); };
    append_taps(taps, plan.past_of(s), plan.past_of(s) + rows, row_of, all);
  }
  return at::tensor(all, at::kLong).view({-1, taps});
}

/// Pointers to the rows that a row sums over; those of the table are `stride` numbers apart.
template <class S>
std::array<S*, kMaxConvolutionTaps> pointers_of(const at::Tensor& taps_TL, std::int64_t row, S* table,
                                                std::int64_t stride) {
  std::array<S*, kMaxConvolutionTaps> pointers{};
  const std::int64_t* places = taps_TL.data_ptr<std::int64_t>() + row * taps_TL.size(1);
  for (std::int64_t tap = 0; tap < taps_TL.size(1); ++tap)
    pointers[static_cast<std::size_t>(tap)] = places[tap] < 0 ? nullptr : table + places[tap] * stride;
  return pointers;
}

template <class S>
at::Tensor weights_by_tap(const at::Tensor& weight) {
  return weight.detach().squeeze(1).t().to(scalar_type_of<Computed<S>>()).contiguous();
}

}  // namespace carnot
