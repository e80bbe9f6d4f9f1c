// reference/attention.h -- causal grouped-query attention by its definition: one query at a time, in double.
#pragma once

#include <vector>

namespace carnot::reference {

struct AttentionInput {
  int heads = 1, kv_heads = 1, dim = 2;
  int length = 0;
  std::vector<double> qkv{};  ///< [length][(heads + 2 kv_heads) * dim], neither normalised nor rotated
  std::vector<double> query_norm{}, key_norm{};  ///< [dim], or empty
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
};

/// [length][heads * dim]
std::vector<double> attention(const AttentionInput& input);

}  // namespace carnot::reference
