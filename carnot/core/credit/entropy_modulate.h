// credit/entropy_modulate.h -- AEM: responses with low policy entropy count more (arXiv:2605.00425).
#pragma once

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

/// A modulator: multiplies the advantage of every response, that is, the sampled tokens of one turn, by
/// alpha = r / (mean r + epsilon), r = exp(-lambda * (H - H_min) / (H_max - H_min + epsilon)), where H is the mean of
/// EntropyOld over the response. A turn that several trajectories share is one response.
/// REQUIRES: Column::EntropyOld, unless lambda is 0.
CreditRule entropy_modulate(const EntropyModulateOptions& options = {});

/// The factors of responses with these mean entropies.
std::vector<double> modulation(std::span<const double> entropies, const EntropyModulateOptions& options);

}  // namespace carnot
