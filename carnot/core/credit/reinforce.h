// credit/reinforce.h -- REINFORCE++: whitened returns, with or without the group's mean as baseline (arXiv:2501.03262).
#pragma once

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

struct ReinforceOptions {
  double gamma = 1;                       ///< per sampled token; not used with the baseline
  bool group_baseline = false;            ///< reward minus the group's mean on every token, instead of returns
  Singleton singleton = Singleton::Zero;  ///< for that baseline
  Whitening whitening{};
  /// As published: the return restarts after every token that was not sampled, so that turns before the last
  /// observation receive nothing from the outcome.
  bool restart_at_observations = false;

  /// Without restart_at_observations, which quirk_fields() visits: a method lists it under `compat`.
  void fields(FieldVisitor& visit);
  void quirk_fields(FieldVisitor& visit);
  /// The quirk as `compat.restart_at_observations`.
  UnreadKeys unread_keys() const;
};

/// Adds whitened returns. Unless restart_at_observations, tokens that were not sampled are skipped.
CreditRule reinforce(const ReinforceOptions& options = {});

}  // namespace carnot
