// credit/entropy_scale.h -- AEPO: tokens with above-average entropy get more of their advantage (arXiv:2510.14545).
#pragma once

#include <span>
#include <vector>

namespace carnot {

/// 1 + strength * (H - mean) / std (n - 1) for each token; std 0 counts as 1. With fewer than two tokens, or strength
/// 0: 1. As in the paper, factors can be negative. The trainer applies them per optimizer step, over its sampled
/// tokens.
std::vector<double> entropy_scale(std::span<const double> entropies, double strength);

}  // namespace carnot
