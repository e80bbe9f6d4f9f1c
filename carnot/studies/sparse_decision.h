// studies/sparse_decision.h -- AEnt's synthetic world: a decision process with few optimal actions, solved exactly.
//
// The states are depths. In each, some actions are optimal: they lead to the next depth, all others to an end without
// reward. Behind the last depth waits reward 1. The policy is a table of logits; its return and all gradients are
// exact, so that nothing but the entropy bonus tells runs apart (arXiv:2509.03493, sections 3 and 4).
#pragma once

#include <span>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/objective/adaptive_coefficient.h"

namespace carnot {

struct SparseProcess {
  std::vector<std::vector<double>> logits{};  ///< by depth and action
  std::vector<std::vector<bool>> optimal{};   ///< the same shape; at least one per depth
};

struct SparseProcessOptions {
  int depth = 3;
  int actions = 1000;
  int optimal = 10;   ///< per depth, drawn from the likelier half of the actions
  double spread = 1;  ///< standard deviation of the first logits
};

/// REQUIRES: 0 < optimal <= actions / 2.
SparseProcess sparse_process(const SparseProcessOptions& options, RandomStream& random);

/// softmax(logits).
std::vector<double> softmax(std::span<const double> logits);

/// Probability of optimal actions, by depth.
std::vector<double> optimal_mass(const SparseProcess& process);

/// Product of optimal_mass: the probability of reward 1.
double expected_return(const SparseProcess& process);

/// Of the expected return, in the logits.
std::vector<std::vector<double>> return_gradient(const SparseProcess& process);

/// Entropy of softmax over the kept actions, renormalised, and its gradient in all logits: 0 for those left out.
struct ClampedEntropy {
  double value = 0;
  std::vector<double> gradient{};
};

/// Leaves out the int(actions * clamp) least likely actions; clamp 0: the whole softmax.
ClampedEntropy clamped_entropy(std::span<const double> logits, double clamp);

enum class EntropyBonus { None, Full, Clamped, Adaptive };

struct AscentOptions {
  EntropyBonus bonus = EntropyBonus::None;
  int steps = 300;
  double learning_rate = 30;
  double coefficient = 0.05;
  double clamp = 0.4;
  AdaptiveEntropyOptions adaptive{};
  /// The return's gradient is divided by the deviation of the reward, as a group's normalised advantages do.
  bool normalise = true;
};

/// One value for the start and one after each step.
struct AscentCurve {
  std::vector<double> expected_return{};
  std::vector<double> coefficient{};
  std::vector<double> entropy{};  ///< that the bonus is about (of the whole softmax without a bonus), mean over visits
};

/// Gradient ascent on return + coefficient x mean entropy of the visited states. Visits are weights without gradient,
/// as in a loss over sampled tokens.
AscentCurve ascend(SparseProcess process, const AscentOptions& options);

}  // namespace carnot
