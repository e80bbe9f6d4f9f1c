#include "carnot/studies/entries.h"

namespace carnot {

const std::vector<AnalysisEntry>& analyses() {
  using enum AnalysisNeeds;
  constexpr auto kAem = "2605.00425", kAepo = "2510.14545", kA2tgpo = "2605.06200", kAent = "2509.03493",
                 kActfocus = "2605.14558";
  static const std::vector<AnalysisEntry> all = {
      {"aem-proxy", kAem, Checkpoint, "AEM's factor against the surprisal that it replaces, measured by sampling",
       aem_proxy},
      {"aem-drift", kAem, Checkpoint,
       "trains without responses of one sign of A (alpha - 1): does the entropy go where it should?", aem_drift},
      {"aem-theorem", kAem, Nothing,
       "entropy drift along the natural policy gradient: the theorem against measured steps", aem_theorem},
      {"aem-transition", kAem, Runs, "entropy and success by step: is entropy higher early and lower late with AEM?",
       aem_transition},
      {"aem-ablation", kAem, Runs, "success with AEM, reversed, shuffled, and with other scopes", aem_ablation},
      {"aem-cost", kAem, Rollouts, "share of a training step that AEM's own work takes", aem_cost},
      {"aepo-branches", kAepo, Rollouts,
       "chains of uncertain turns, and how many trajectories of a group receive branches", aepo_branches},
      {"aepo-diversity", kAepo, Rollouts, "clusters of rollouts of one task, by DBSCAN over sets of tokens",
       aepo_diversity},
      {"aepo-clip", kAepo, Rollouts,
       "by entropy: share of tokens clipped, and of gradient that the preserving rule keeps", aepo_clip},
      {"aepo-budget", kAepo, Rollouts,
       "does the budget that entropy assigns to a task follow the variance of its rewards?", aepo_budget},
      {"aepo-ablation", kAepo, Runs, "success with AEPO, and without each of its parts", aepo_ablation},
      {"a2tgpo-similarity", kA2tgpo, Rollouts,
       "how alike turns of one index are across rollouts, against turns of different index", a2tgpo_similarity},
      {"a2tgpo-gain", kA2tgpo, Rollouts, "information gains and advantages by turn: IGPO's sums against A2TGPO's",
       a2tgpo_gain},
      {"a2tgpo-clip", kA2tgpo, Rollouts, "width of the adaptive clip range and share of turns that it holds, by turn",
       a2tgpo_clip},
      {"a2tgpo-sweep", kA2tgpo, Runs, "success for values of the clip swing beta", a2tgpo_sweep},
      {"a2tgpo-lengths", kA2tgpo, Runs, "shortest, mean and longest responses, and tool calls, by step",
       a2tgpo_lengths},
      {"aent-sparse", kAent, Nothing,
       "what full, clamped and adaptive entropy bonuses do where few of many actions are optimal", aent_sparse},
      {"actfocus-energy", kActfocus, Rollouts,
       "does the reference's energy follow the spread of rewards: all, think and action tokens", actfocus_energy},
      {"actfocus-signals", kActfocus, Checkpoints, "drift of the four signals between checkpoints, on the same text",
       actfocus_signals},
      {"actfocus-weights", kActfocus, Rollouts,
       "share of action tokens, and of the gradient they carry for values of alpha and beta", actfocus_weights},
      {"actfocus-ablation", kActfocus, Runs, "success by the signal that weighs action tokens", actfocus_ablation},
      {"actfocus-sweep", kActfocus, Runs, "success for values of alpha and beta", actfocus_sweep},
      {"credit-oracle", "", Checkpoint,
       "true advantages of turns, thoughts and actions by continuations, and every method's credit against them",
       credit_oracle},
  };
  return all;
}

}  // namespace carnot
