#include "carnot/core/credit/critic_estimator.h"

#include "carnot/core/credit/bilevel_gae.h"

namespace carnot {

void CriticQuirks::fields(FieldVisitor& visit) {
  visit.field("through_observations", through_observations,
              "older code: the recursion runs through observations too (not bilevel)");
  visit.field("turns_end_at_rewards", turns_end_at_rewards,
              "bilevel: a turn ends where a token's reward is not 0, instead of where it was sampled");
}

void CriticEstimatorOptions::fields(FieldVisitor& visit) {
  gae.fields(visit);
  visit.field("bilevel", bilevel, "estimate between turns first, then inside each (RAGEN); use with reward.per_turn");
  visit.field("turn_gamma", turn_gamma, "discount per turn of the bilevel form", between(0, 1));
}

UnreadKeys CriticEstimatorOptions::unread_keys() const {
  UnreadKeys unread;
  unread.add(gae.unread_keys());
  if (bilevel)
    unread.add({"compat.through_observations"}, "bilevel estimates inside turns");
  else
    unread.add({"turn_gamma", "compat.turns_end_at_rewards"}, "bilevel is false");
  return unread;
}

CreditRule critic_estimator(const CriticEstimatorOptions& options) {
  GaeOptions between_tokens = options.gae;
  between_tokens.skip_unsampled = !options.quirks.through_observations;
  if (!options.bilevel) return gae(between_tokens);
  return bilevel_gae({.gamma = options.gae.gamma,
                      .lambda = options.gae.lambda,
                      .turn_gamma = options.turn_gamma,
                      .whiten = options.gae.whiten,
                      .whitening = options.gae.whitening,
                      .turns_end_at_rewards = options.quirks.turns_end_at_rewards});
}

}  // namespace carnot
