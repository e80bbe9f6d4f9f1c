// credit/entropy_modulate.h -- AEM: responses that the policy was certain of count more (arXiv:2605.00425).
#pragma once

#include "carnot/base/fields.h"
#include "carnot/credit/rule.h"

namespace carnot {

/// Over what responses are compared.
enum class ModulationScope { Group, Trajectory, Batch };

struct EntropyModulateOptions {
  double lambda = 1;  ///< strength; 0: the identity; below 0: uncertain responses count more (ablation)
  double gate = 0.1;  ///< nats: a narrower spread of entropies leaves all factors at 1
  double epsilon = 1e-8;
  ModulationScope scope = ModulationScope::Group;
  bool shuffle = false;  ///< ablation: the factors of a scope are shuffled, by the group's seed

  void fields(FieldVisitor& visit);
};

/// A modulator: multiplies the advantage of every response, that is the sampled tokens of one turn, by
/// alpha = r / (mean r + epsilon), r = exp(-lambda * (H - H_min) / (H_max - H_min + epsilon)), where H is the mean
/// of EntropyOld over the response. A turn that several trajectories share is one response.
/// REQUIRES: Column::EntropyOld, unless lambda is 0.
CreditRule entropy_modulate(const EntropyModulateOptions& options = {});

/// The factors of responses with these mean entropies.
std::vector<double> modulation(std::span<const double> entropies, const EntropyModulateOptions& options);

}  // namespace carnot
