#include "carnot/core/credit/gain_estimator.h"

namespace carnot {

void GainQuirks::fields(FieldVisitor& visit) {
  visit.field("token_rewards", token_rewards,
              "November 2025: gains are token rewards, against the group's mean at the same token index");
  enum_field(visit, "token_baseline", token_baseline, {"column", "first_token"},
             "what token rewards are taken against: the mean at the same index, or the group's first tokens");
  visit.field("restart_at_observations", restart_at_observations, "sums of token rewards restart after observations");
  visit.field("forget_zero_gains", forget_zero_gains, "a gain of exactly 0 is lost and its turn joins the next");
}

void GainEstimatorOptions::fields(FieldVisitor& visit) { turns.fields(visit); }

UnreadKeys GainEstimatorOptions::unread_keys() const {
  UnreadKeys unread;
  unread.add(turns.unread_keys());
  if (!quirks.token_rewards)
    unread.add({"compat.token_baseline", "compat.restart_at_observations"}, "compat.token_rewards is false");
  if (quirks.token_rewards) unread.add({"pool", "compat.forget_zero_gains"}, "compat.token_rewards has its own form");
  if (quirks.token_rewards && quirks.token_baseline == TokenBaseline::Column)
    unread.add_all(turns.normalisation, "", "compat.token_baseline column takes the mean alone");
  return unread;
}

CreditRule gain_estimator(const GainEstimatorOptions& options) {
  TurnGainOptions turns = options.turns;
  if (options.quirks.forget_zero_gains) turns.steps = GainSteps::NonzeroGains;
  if (!options.quirks.token_rewards) return turn_gain(turns);
  return token_gain({.discount = turns.discount,
                     .baseline = options.quirks.token_baseline,
                     .normalisation = turns.normalisation,
                     .restart_at_observations = options.quirks.restart_at_observations});
}

}  // namespace carnot
