#include "reference/policy_loss.h"

#include <algorithm>
#include <cmath>

namespace carnot::reference {
namespace {

double bounded(double x, double low, double high) { return std::min(std::max(x, low), high); }

struct Step {
  const ObjectiveOptions& options;
  const LossSequences& sequences;

  /// What one token's loss is divided by; `weighted` says whether tokens count by weight or by one.
  double share(std::size_t i, std::size_t t, bool weighted) const {
    double total = 0, own = 0, count = 0;
    for (std::size_t s = 0; s < sequences.size(); ++s)
      for (std::size_t n = 0; n < sequences[s].size(); ++n) {
        const LossToken& token = sequences[s][n];
        if (n == 0 || !same_sequence(sequences[s][n - 1], token)) count += 1;
        total += weighted ? token.weight : 1;
        if (s == i && same_sequence(sequences[i][t], token)) own += weighted ? token.weight : 1;
      }
    const double w = weighted ? sequences[i][t].weight : 1;
    switch (options.reduction) {
      case Reduction::TokenMean: return total > 0 ? w / total : 0;
      case Reduction::SequenceMeanTokenMean: return own > 0 ? w / own / count : 0;
      case Reduction::SequenceMeanTokenSum: return w / count;
      case Reduction::TokenSumOverConstant: return w / options.reduction_constant;
    }
    return 0;
  }

  // Of one trajectory.
  bool same_sequence(const LossToken& a, const LossToken& b) const {
    return options.sequence == SequenceUnit::Trajectory || a.turn == b.turn;
  }

  bool same_segment(const LossToken& a, const LossToken& b) const {
    return options.ratio == RatioLevel::Sequence ? same_sequence(a, b) : a.turn == b.turn;
  }

  double log_ratio(std::size_t i, std::size_t t) const {
    const LossToken& own = sequences[i][t];
    if (options.ratio == RatioLevel::Token) return own.logprob - own.logprob_old;
    double sum = 0, count = 0;
    for (const LossToken& other : sequences[i])
      if (same_segment(own, other)) {
        sum += other.logprob - other.logprob_old;
        count += 1;
      }
    return sum / count;
  }

  double largest() const { return options.ratio == RatioLevel::Token ? 20 : 10; }
  double ratio(std::size_t i, std::size_t t) const { return std::exp(bounded(log_ratio(i, t), -20, largest())); }

  double importance(const LossToken& token) const {
    if (options.importance_cap <= 0) return 1;
    return std::min(std::exp(bounded(token.logprob_old - token.logprob_rollout, -20, 20)), options.importance_cap);
  }

  /// The published form: the larger of two losses, then the smaller of that and the dual clip.
  double token_loss(std::size_t i, std::size_t t) const {
    const LossToken& token = sequences[i][t];
    const double r = ratio(i, t), a = token.advantage;
    const double clipped =
        bounded(r, 1 - options.clip_low * token.clip_scale, 1 + options.clip_high * token.clip_scale);
    double loss = std::max(-a * r, -a * clipped);
    if (a < 0 && options.dual_clip > 0) loss = std::min(loss, -a * options.dual_clip);
    return loss * importance(token);
  }

  /// Derivative of token_loss with respect to the log-ratio.
  double token_slope(std::size_t i, std::size_t t) const {
    const LossToken& token = sequences[i][t];
    const double r = ratio(i, t), a = token.advantage;
    const double high = 1 + options.clip_high * token.clip_scale;
    double factor = r;
    if (log_ratio(i, t) > largest() || log_ratio(i, t) < -20) factor = 0;
    if (a > 0 && r > high) factor = options.clip_gradient == ClipGradient::Preserve ? high : 0;
    if (a < 0 && r < 1 - options.clip_low * token.clip_scale) factor = 0;
    if (a < 0 && options.dual_clip > 0 && r > options.dual_clip) factor = 0;
    return -a * factor * importance(token);
  }

  double policy_gradient(std::size_t i, std::size_t t) const {
    if (options.ratio == RatioLevel::Token || options.segment_gradient == SegmentGradient::Own)
      return share(i, t, true) * token_slope(i, t);
    double sum = 0, count = 0;
    for (std::size_t j = 0; j < sequences[i].size(); ++j)
      if (same_segment(sequences[i][t], sequences[i][j])) {
        sum += share(i, j, true) * token_slope(i, j);
        count += 1;
      }
    return sum / count;
  }

  double kl(const LossToken& token) const {
    const double x = token.logprob - token.logprob_reference;
    if (options.kl_estimator == KlEstimator::K1) return x;
    if (options.kl_estimator == KlEstimator::Absolute) return std::fabs(x);
    if (options.kl_estimator == KlEstimator::K2) return x * x / 2;
    const double y = bounded(-x, -20, 20);
    return bounded(std::exp(y) - y - 1, -10, 10);
  }

  double kl_slope(const LossToken& token) const {
    const double x = token.logprob - token.logprob_reference;
    if (options.kl_straight_through || options.kl_estimator == KlEstimator::K2) return x;
    if (options.kl_estimator == KlEstimator::K1) return 1;
    if (options.kl_estimator == KlEstimator::Absolute) return x > 0 ? 1 : -1;
    if (std::fabs(x) > 20 || std::exp(-x) + x - 1 > 10) return 0;
    return 1 - std::exp(-x);
  }

  double value_error(const LossToken& token, double* slope) const {
    const double near =
        bounded(token.value, token.value_old - options.value_clip, token.value_old + options.value_clip);
    const double error = token.value - token.value_target, near_error = near - token.value_target;
    const bool flat = near_error * near_error > error * error;
    *slope = flat ? 0 : error;
    return std::max(error * error, near_error * near_error) / 2;
  }
};

}  // namespace

SlowLoss policy_loss(const ObjectiveOptions& options, const LossSequences& sequences) {
  const Step step{options, sequences};
  SlowLoss result;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    result.by_logprob.emplace_back();
    result.by_entropy.emplace_back();
    result.by_value.emplace_back();
    for (std::size_t t = 0; t < sequences[i].size(); ++t) {
      const LossToken& token = sequences[i][t];
      const double plain = step.share(i, t, false);
      double value_slope = 0;
      result.policy += step.share(i, t, true) * step.token_loss(i, t);
      result.kl += plain * step.kl(token);
      result.entropy += plain * token.entropy;
      result.value += plain * step.value_error(token, &value_slope);
      result.by_logprob[i].push_back(step.policy_gradient(i, t) +
                                     options.kl_coefficient * plain * step.kl_slope(token));
      result.by_entropy[i].push_back(-options.entropy_coefficient * plain);
      result.by_value[i].push_back(options.value_coefficient * plain * value_slope);
    }
  }
  result.loss = result.policy + options.kl_coefficient * result.kl - options.entropy_coefficient * result.entropy +
                options.value_coefficient * result.value;
  return result;
}

}  // namespace carnot::reference
