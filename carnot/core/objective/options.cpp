#include "carnot/core/objective/options.h"

namespace carnot {

void ObjectiveOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "ratio", ratio, {"token", "turn", "sequence"}, "level at which the probability ratio is taken");
  sequence_field(visit, sequence);
  enum_field(visit, "segment_gradient", segment_gradient, {"own", "shared"},
             "credit of a turn or sequence ratio's gradient: each token's own, or the segment's mean");
  visit.field("clip_low", clip_low, "the ratio is kept above 1 - clip_low", between(0, 1));
  visit.field("clip_high", clip_high, "the ratio is kept below 1 + clip_high", at_least(0));
  visit.field("dual_clip", dual_clip, "for negative advantages the loss is at most this times |A|; 0: off",
              at_least(0));
  enum_field(visit, "clip_gradient", clip_gradient, {"zero", "preserve"},
             "gradient of a ratio clipped from above: zero (PPO) or preserved (AEPO)");
  enum_field(visit, "reduction", reduction,
             {"token_mean", "sequence_mean_token_mean", "sequence_mean_token_sum", "token_sum_over_constant"},
             "how token losses become one number; denominators are the whole step's");
  visit.field("reduction_constant", reduction_constant, "divisor of token_sum_over_constant; 0: the response limit",
              at_least(0));
  visit.field("kl_coefficient", kl_coefficient, "weight of the KL to the reference in the loss", at_least(0));
  enum_field(visit, "kl_estimator", kl_estimator, {"k1", "absolute", "k2", "k3"}, "estimator of that KL");
  visit.field("kl_straight_through", kl_straight_through, "value of the estimator, gradient of k2");
  visit.field("kl_in_reward", kl_in_reward, "weight of the KL of old policy and reference in token rewards",
              at_least(0));
  section(visit, "adaptive_kl", adaptive_kl, "lets kl_in_reward, or else kl_coefficient, follow the KL");
  visit.field("entropy_coefficient", entropy_coefficient, "weight of the entropy bonus", at_least(0));
  visit.field("entropy_clamp", entropy_clamp,
              "share of the vocabulary, the least likely, left out of the bonus's entropy",
              {.low = 0, .high = 1, .open_high = true});
  section(visit, "adaptive_entropy", adaptive_entropy, "lets entropy_coefficient follow the entropy");
  visit.field("entropy_scale", entropy_scale, "advantages are multiplied by 1 + this times the z-score of the entropy",
              at_least(0));
  entropy_scale_over_field(visit, entropy_scale_over, "which entropies that z-score is taken over");
  visit.field("value_coefficient", value_coefficient, "weight of the critic's loss; 0: no critic", at_least(0));
  visit.field("value_clip", value_clip, "new values stay this close to old ones in the critic's loss", above(0));
  visit.field("importance_cap", importance_cap,
              "cap of the importance weight between rollout and training log-probabilities; 0: off", at_least(0));
}

void entropy_scale_over_field(FieldVisitor& visit, EntropyScaleOver& over, std::string_view help) {
  enum_field(visit, "entropy_scale_over", over, {"old_policy_step", "current_micro_batch"}, help);
}

void sequence_field(FieldVisitor& visit, SequenceUnit& unit) {
  enum_field(visit, "sequence", unit, {"trajectory", "response"},
             "what a sequence's ratio and means over sequences take as one: a trajectory, or each response (turn)");
}

std::vector<Column> columns_read(const ObjectiveOptions& options) {
  std::vector<Column> columns{Column::LogProbOld};
  if (options.kl_coefficient > 0) columns.push_back(Column::LogProbReference);
  if (options.value_coefficient > 0) columns.push_back(Column::Value);
  if (options.importance_cap > 0) columns.push_back(Column::LogProbRollout);
  if (options.entropy_scale != 0 && options.entropy_scale_over == EntropyScaleOver::OldPolicyStep)
    columns.push_back(Column::EntropyOld);
  return columns;
}

}  // namespace carnot
