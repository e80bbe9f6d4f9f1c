// credit/entropy_modulate.h -- credit by entropy: responses with low policy entropy count more (AEM, arXiv:2605.00425),
// or tokens with above-average entropy do (AEPO, arXiv:2510.14545).
#pragma once

#include <span>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

/// The set of responses that are compared with each other.
enum class ModulationScope { Group, Trajectory, Batch };

struct EntropyModulateOptions {
  double lambda = 1;  ///< strength; 0: no effect; below 0: uncertain responses count more (ablation)
  double gate = 0.1;  ///< nats: if the entropies differ by less than this, all factors are 1
  double epsilon = 1e-8;
  ModulationScope scope = ModulationScope::Group;
  bool shuffle = false;  ///< ablation: the factors of a scope are shuffled, by the group's seed

  void fields(FieldVisitor& visit);
};

/// AEM, a modulator: multiplies the advantage of every response, that is, the sampled tokens of one turn, by
/// alpha = r / (mean r + epsilon), r = exp(-lambda * (H - H_min) / (H_max - H_min + epsilon)), where H is the mean of
/// EntropyOld over the response. A turn that several trajectories share is one response.
/// REQUIRES: Column::EntropyOld, unless lambda is 0.
CreditRule entropy_modulate(const EntropyModulateOptions& options = {});

/// The factors of responses with these mean entropies.
std::vector<double> modulation(std::span<const double> entropies, const EntropyModulateOptions& options);

/// AEPO: 1 + strength * (H - mean) / std (n - 1) for each token; std 0 counts as 1. With fewer than two tokens, or
/// strength 0: 1. As in the paper, factors can be negative. The trainer applies them per optimizer step, over its
/// sampled tokens.
std::vector<double> entropy_scale(std::span<const double> entropies, double strength);

}  // namespace carnot
