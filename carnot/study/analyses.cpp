#include "carnot/study/entries.h"

namespace carnot {

const std::vector<AnalysisEntry>& analyses() {
  static const std::vector<AnalysisEntry> all = {
      aem_proxy_entry(),         aem_drift_entry(),       aem_theorem_entry(),      aem_transition_entry(),
      aem_ablation_entry(),      aem_cost_entry(),        aepo_branches_entry(),    aepo_diversity_entry(),
      aepo_clip_entry(),         aepo_budget_entry(),     aepo_ablation_entry(),    a2tgpo_similarity_entry(),
      a2tgpo_gain_entry(),       a2tgpo_clip_entry(),     a2tgpo_sweep_entry(),     a2tgpo_lengths_entry(),
      aent_sparse_entry(),       actfocus_energy_entry(), actfocus_signals_entry(), actfocus_weights_entry(),
      actfocus_ablation_entry(), actfocus_sweep_entry(),
  };
  return all;
}

}  // namespace carnot
