// nn/packed_rows.h -- the sequences of a packed plan as a kernel takes them. Internal to the room.
#pragma once

#include <cstddef>
#include <vector>

#include "carnot/core/nn/attention_plan.h"

namespace carnot {

/// `Rows`: kernel::AttentionRows or kernel::RecurrentRows.
template <class Rows>
std::vector<Rows> packed_rows_of(const PackedAttention& plan) {
  std::vector<Rows> rows;
  for (int s = 0; s < plan.num_sequences(); ++s) {
    const auto i = static_cast<std::size_t>(s);
    rows.push_back({.begin = plan.offsets[i],
                    .rows = plan.offsets[i + 1] - plan.offsets[i],
                    .past = plan.past_of(s),
                    .parent = plan.parent(s)});
  }
  return rows;
}

}  // namespace carnot
