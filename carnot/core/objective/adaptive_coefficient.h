// objective/adaptive_coefficient.h -- two coefficients that adapt to the quantity they act on. Plain data: a checkpoint
// stores `coefficient` and `step`.
#pragma once

#include <cstdint>

#include "carnot/core/base/unread_keys.h"

namespace carnot {

/// AEnt (arXiv:2509.03493, section 4): the coefficient rises while the entropy is below `low` and falls while it is
/// above `high`.
struct AdaptiveEntropyOptions {
  bool enabled = false;
  double low = 0.05;   ///< nats
  double high = 0.23;  ///< nats
  double rate = 0.001;
  double least = 1e-5;
  double most = 0.003;
  std::int64_t warmup = 29;  ///< the coefficient is constant for the steps 0 to warmup

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const;
};

struct EntropyCoefficient {
  double coefficient = 0;
  std::int64_t step = 0;  ///< steps taken

  /// Call after a training step whose update had this mean (clamped) entropy. The new value takes effect at the next
  /// step.
  void update(const AdaptiveEntropyOptions& options, double entropy);
};

/// The controller of arXiv:1909.08593: proportional, clipped, towards a target KL.
struct AdaptiveKlOptions {
  bool enabled = false;
  double target = 0.1;
  double horizon = 10000;  ///< trajectories
  double clip = 0.2;

  void fields(FieldVisitor& visit);
};

struct KlCoefficient {
  double coefficient = 0;

  /// Call after a step over `trajectories` with this mean KL.
  void update(const AdaptiveKlOptions& options, double kl, double trajectories);
};

}  // namespace carnot
