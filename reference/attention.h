// reference/attention.h -- causal grouped-query attention by its definition: one query at a time, in double.
#pragma once

#include <vector>

namespace carnot::reference {

struct AttentionInput {
  int heads = 1, kv_heads = 1, dim = 2;
  int length = 0;
  std::vector<double> qkv{};  ///< [length][(heads + 2 kv_heads) * dim], neither normalised nor rotated
  std::vector<double> query_norm{}, key_norm{};  ///< [dim], or empty
  std::vector<double> query_scale{};             ///< [position], or empty
  double norm_epsilon = 1e-6;
  double rope_theta = 10000;
  int unrotated = 0;  ///< last numbers of a head that are not rotated
  int window = 0;     ///< positions that a query sees, its own included; 0: all up to its own
};

/// [length][heads * dim]
std::vector<double> attention(const AttentionInput& input);

}  // namespace carnot::reference
