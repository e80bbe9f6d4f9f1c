// train/explanation.h -- what one optimizer step over each training step's trajectories would do to each sampled token,
// from columns alone: no model is run.
//
// Column::LogProbCurrent takes the place of the policy that the step changes, Column::Value that of its critic. All
// trajectories of a training step that count are one optimizer step, with its denominators.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/objective/options.h"

namespace carnot {

/// What holds a token's ratio (loss/clip.h): nothing, the clip range from below or above, the dual clip, or the
/// limit of log-ratios (loss/ratio.h).
enum class ClipState { None, Low, High, Dual, Limit };
inline constexpr std::array<std::string_view, 5> kClipStateNames = {"none", "low", "high", "dual", "limit"};
inline std::string_view name_of(ClipState state) { return kClipStateNames[static_cast<std::size_t>(state)]; }

/// Of one trajectory, by token; NaN and Empty if the step does not train the token. Lists are empty if the
/// objective has no such term.
struct TokenExplanation {
  std::vector<double> ratio{};  ///< of the objective's level: the token's, its turn's or its sequence's
  std::vector<ClipState> clip_state{};
  /// Derivative of the step's loss (policy and KL) with respect to the token's log-probability.
  std::vector<double> gradient{};
  std::vector<double> policy_gradient{};   ///< the policy loss's part of it
  std::vector<double> unit_share{};        ///< share in the step's policy loss that a weight of 1 has here
  std::vector<double> scaled_advantage{};  ///< after objective.entropy_scale (AEPO): what the surrogate uses
  std::vector<double> value_loss{};        ///< (value - target)^2 / 2, before reduction and coefficient
  std::vector<double> value_gradient{};    ///< derivative of the step's loss with respect to the token's value
};

struct Explanation {
  std::vector<TokenExplanation> trajectories{};  ///< numbered as the trajectories
  std::vector<std::string> excluded{};           ///< terms of the loss that the gradient leaves out, with the reason
};

/// What explain_steps reads besides the credit, on the sampled tokens of every included trajectory.
std::vector<Column> explained_columns(const ObjectiveOptions& options);

/// Lists the options that need what neither columns nor credit hold. REQUIRES: the columns above.
Result<Explanation> explain_steps(ObjectiveOptions options, std::span<const Trajectory> trajectories,
                                  const CreditTable& credit);

}  // namespace carnot
