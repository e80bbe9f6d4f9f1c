// objective/options.h -- what a method asks of the objective, as plain data; carnot/core/loss implements it with
// tensors.
//
// Every field is documented in docs/methods; `objective.*` keys of a recipe override what the method sets.
#pragma once

#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/data/columns.h"
#include "carnot/core/objective/adaptive_coefficient.h"

namespace carnot {

enum class RatioLevel { Token, Turn, Sequence };
/// The sequence of sequence-level ratios and means: a trajectory, or each of its responses (turns), as in programs
/// whose rows are single responses.
enum class SequenceUnit { Trajectory, Response };
enum class Reduction { TokenMean, SequenceMeanTokenMean, SequenceMeanTokenSum, TokenSumOverConstant };
enum class KlEstimator { K1, Absolute, K2, K3 };
/// What happens to the gradient of a ratio above 1 + clip_high with a positive advantage: Zero (PPO) or
/// Preserve (AEPO: the value of the clipped surrogate, 1 + clip_high times the token's gradient).
enum class ClipGradient { Zero, Preserve };
/// Gradient of a turn's or sequence's ratio s. Own: token t gets s grad log p_t times its own credit (GSPO's token
/// form, also A2TGPO). Shared: the gradient of the mean log-ratio, which averages credit over the segment (Tree-GRPO,
/// AReaL). The two are equal if advantage and weight are constant in the segment.
enum class SegmentGradient { Own, Shared };

/// What entropy_scale compares a token's entropy with.
enum class EntropyScaleOver {
  OldPolicyStep,      ///< EntropyOld over the sampled tokens of the optimizer step: micro-batching cannot change it
  CurrentMicroBatch,  ///< the current policy's, over the sampled tokens of the micro-batch (published AEPO)
};

struct ObjectiveOptions {
  RatioLevel ratio = RatioLevel::Token;
  SequenceUnit sequence = SequenceUnit::Trajectory;
  SegmentGradient segment_gradient = SegmentGradient::Own;
  double clip_low = 0.2;
  double clip_high = 0.2;
  double dual_clip = 3.0;  ///< c > 1: for A < 0 the loss is at most c |A|; 0 turns it off
  ClipGradient clip_gradient = ClipGradient::Zero;
  Reduction reduction = Reduction::TokenMean;
  double reduction_constant = 0;  ///< of TokenSumOverConstant; 0: the response limit

  double kl_coefficient = 0;  ///< of the KL to the reference in the loss
  KlEstimator kl_estimator = KlEstimator::K3;
  bool kl_straight_through = false;  ///< value of the estimator, gradient of k2
  double kl_in_reward = 0;           ///< coefficient of k1(old, reference) subtracted from token rewards
  AdaptiveKlOptions adaptive_kl{};   ///< adapts kl_in_reward, or else kl_coefficient, to the KL

  double entropy_coefficient = 0;  ///< of the entropy bonus
  double entropy_clamp =
      0;  ///< share of the vocabulary, the least likely, left out of the bonus's entropy (AEnt); 0: none
  AdaptiveEntropyOptions adaptive_entropy{};  ///< adapts entropy_coefficient to the (clamped) entropy

  double entropy_scale =
      0;  ///< advantages are multiplied by 1 + entropy_scale * z(entropy) (AEPO, credit/entropy_modulate.h)
  EntropyScaleOver entropy_scale_over = EntropyScaleOver::OldPolicyStep;

  double value_coefficient = 0;  ///< 0: no critic
  double value_clip = 0.5;

  /// Truncated importance sampling between rollout and training log-probabilities: factor min(exp(old - rollout), cap);
  /// 0: off.
  double importance_cap = 0;

  void fields(FieldVisitor& visit);
};

/// Visits `entropy_scale_over`.
void entropy_scale_over_field(FieldVisitor& visit, EntropyScaleOver& over, std::string_view help);
/// Visits `sequence`.
void sequence_field(FieldVisitor& visit, SequenceUnit& unit);

/// The columns that the loss reads for every sampled token; kl_in_reward is a credit rule and declares its own.
std::vector<Column> columns_read(const ObjectiveOptions& options);

}  // namespace carnot
