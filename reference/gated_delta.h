// reference/gated_delta.h -- the gated delta rule by its definition: one head and one position at a time, in double.
#pragma once

#include <vector>

namespace carnot::reference {

struct DeltaRuleInput {
  int key_heads = 1, value_heads = 1, key_dim = 1, value_dim = 1;
  int length = 0;
  std::vector<double> qkv{};     ///< [length][2 key_heads key_dim + value_heads value_dim]: queries, keys, values
  std::vector<double> a{}, b{};  ///< [length][value_heads]
  std::vector<double> log_rate{}, step_bias{};  ///< [value_heads]
  double norm_epsilon = 1e-6;
};

struct DeltaRuleResult {
  std::vector<double> out{};    ///< [length][value_heads][value_dim]
  std::vector<double> state{};  ///< the last one, [value_heads][key_dim][value_dim]
};
DeltaRuleResult gated_delta(const DeltaRuleInput& input);

struct DeltaRuleGradients {
  std::vector<double> qkv{}, a{}, b{}, log_rate{}, step_bias{};
};
/// By the chain rule through every stored state.
DeltaRuleGradients gated_delta_gradients(const DeltaRuleInput& input, const std::vector<double>& dout);

}  // namespace carnot::reference
