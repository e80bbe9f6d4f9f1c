// testing/random_losses.h -- random tokens for the objective, and every combination of its options.
#pragma once

#include <string>

#include "carnot/core/base/random.h"
#include "carnot/core/objective/options.h"
#include "reference/policy_loss.h"

namespace carnot::testing {

/// ObjectiveOptions::reduction_constant of for_every_combination.
inline constexpr double kReductionConstant = 17;

/// Random tokens of up to three turns per trajectory. Ratios reach far outside every clip range.
inline reference::LossSequences random_loss_sequences(RandomStream& random, std::size_t count) {
  reference::LossSequences sequences(count);
  for (auto& sequence : sequences) {
    int turn = 0;
    const double scale = random.chance(0.3) ? 4.0 : 0.4;
    for (std::uint64_t n = 1 + random.below(9); n > 0; --n) {
      if (random.chance(0.3)) ++turn;
      const double old = -1.5 + random.normal();
      sequence.push_back({.logprob = old + scale * random.normal(),
                          .logprob_old = old,
                          .logprob_rollout = old + 0.7 * random.normal(),
                          .logprob_reference = old + 2 * random.normal(),
                          .entropy = 2 * random.uniform(),
                          .value = random.normal(),
                          .value_old = random.normal(),
                          .value_target = random.normal(),
                          .advantage = random.chance(0.1) ? 0 : random.normal(),
                          .weight = random.chance(0.2) ? 0 : 2 * random.uniform(),
                          .clip_scale = 0.5 + random.uniform(),
                          .turn = turn});
    }
  }
  return sequences;
}

/// Calls visit(options, words) for every combination of the options' values.
template <class Visit>
void for_every_combination(const Visit& visit) {
  for (int code = 0; code < 3 * 2 * 2 * 2 * 4 * 4 * 2 * 2 * 2; ++code) {
    int rest = code;
    const auto pick = [&](int n) {
      const int choice = rest % n;
      rest /= n;
      return choice;
    };
    ObjectiveOptions options{
        .clip_low = 0.2, .clip_high = 0.28, .reduction_constant = kReductionConstant, .value_clip = 0.4};
    options.ratio = static_cast<RatioLevel>(pick(3));
    options.segment_gradient = static_cast<SegmentGradient>(pick(2));
    options.clip_gradient = static_cast<ClipGradient>(pick(2));
    options.dual_clip = pick(2) == 0 ? 0 : 1.8;
    options.reduction = static_cast<Reduction>(pick(4));
    options.kl_estimator = static_cast<KlEstimator>(pick(4));
    options.kl_straight_through = pick(2) == 1;
    options.importance_cap = pick(2) == 0 ? 0 : 1.5;
    const bool extras = pick(2) == 1;
    options.kl_coefficient = extras ? 0.3 : 0;
    options.entropy_coefficient = extras ? 0.1 : 0;
    options.value_coefficient = extras ? 0.7 : 0;
    visit(options, "combination " + std::to_string(code));
  }
}

}  // namespace carnot::testing
