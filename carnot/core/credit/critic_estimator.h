// credit/critic_estimator.h -- advantages from a critic's values: token by token, or turn by turn first.
#pragma once

#include "carnot/core/credit/gae.h"

namespace carnot {

/// Deviations of published programs.
struct CriticQuirks {
  bool through_observations = false;  ///< gae() with skip_unsampled = false
  bool turns_end_at_rewards = false;  ///< of bilevel_gae()

  void fields(FieldVisitor& visit);
};

struct CriticEstimatorOptions {
  GaeOptions gae{};
  bool bilevel = false;      ///< bilevel_gae() instead of gae()
  double turn_gamma = 0.95;  ///< of bilevel_gae(), per turn
  CriticQuirks quirks{};

  /// Without the quirks, which a method lists under `compat`.
  void fields(FieldVisitor& visit);
  /// The quirks as `compat.*`.
  UnreadKeys unread_keys() const;
};

CreditRule critic_estimator(const CriticEstimatorOptions& options);

}  // namespace carnot
