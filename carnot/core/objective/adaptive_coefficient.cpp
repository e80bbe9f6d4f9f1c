#include "carnot/core/objective/adaptive_coefficient.h"

#include <algorithm>

namespace carnot {

void AdaptiveEntropyOptions::fields(FieldVisitor& visit) {
  visit.field("enabled", enabled, "let the entropy coefficient follow the entropy");
  visit.field("low", low, "nats; below it the coefficient rises");
  visit.field("high", high, "nats; above it the coefficient falls");
  visit.field("rate", rate, "change of the coefficient per nat outside and step", at_least(0));
  visit.field("least", least, "the coefficient stays at or above this", at_least(0));
  visit.field("most", most, "the coefficient stays at or below this", at_least(0));
  visit.field("warmup", warmup, "number of the last step at which the coefficient stays", count_from(0));
}

UnreadKeys AdaptiveEntropyOptions::unread_keys() const {
  UnreadKeys unread;
  if (!enabled) unread.add({"low", "high", "rate", "least", "most", "warmup"}, "adaptive.enabled is false");
  return unread;
}

void EntropyCoefficient::update(const AdaptiveEntropyOptions& options, double entropy) {
  if (options.enabled && step > options.warmup) {
    const double outside = std::min(0.0, entropy - options.low) + std::max(0.0, entropy - options.high);
    coefficient =
        std::clamp(coefficient - options.rate * outside, options.least, std::max(options.least, options.most));
  }
  ++step;
}

void AdaptiveKlOptions::fields(FieldVisitor& visit) {
  visit.field("enabled", enabled, "let the KL coefficient follow the KL");
  visit.field("target", target, "the KL that is steered to", above(0));
  visit.field("horizon", horizon, "trajectories over which the coefficient adapts", above(0));
  visit.field("clip", clip, "bound of the relative error", at_least(0));
}

void KlCoefficient::update(const AdaptiveKlOptions& options, double kl, double trajectories) {
  if (!options.enabled) return;
  const double error = std::clamp(kl / options.target - 1, -options.clip, options.clip);
  coefficient *= 1 + error * trajectories / options.horizon;
}

}  // namespace carnot
