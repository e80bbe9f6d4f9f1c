// reference/adamw.h -- AdamW as in its paper (arXiv:1711.05101, Algorithm 2), one number at a time.
#pragma once

#include <vector>

namespace carnot::reference {

struct AdamWWeight {
  double value = 0;
  double first = 0, second = 0;
  bool decays = false;
};

struct AdamWSettings {
  double learning_rate = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0, max_grad_norm = 0;
};

/// Update number `t` (from 1).
void adamw_step(const AdamWSettings& settings, int t, const std::vector<double>& gradients,
                std::vector<AdamWWeight>& weights);

}  // namespace carnot::reference
