// study/entries.h -- one entry per analysis; each in the file of its name, sweeps of runs in sweeps.cpp.
#pragma once

#include "carnot/study/analysis.h"

namespace carnot {

AnalysisEntry aem_proxy_entry();
AnalysisEntry aem_drift_entry();
AnalysisEntry aem_theorem_entry();
AnalysisEntry aem_transition_entry();
AnalysisEntry aem_ablation_entry();
AnalysisEntry aem_cost_entry();
AnalysisEntry aepo_branches_entry();
AnalysisEntry aepo_diversity_entry();
AnalysisEntry aepo_clip_entry();
AnalysisEntry aepo_budget_entry();
AnalysisEntry aepo_ablation_entry();
AnalysisEntry a2tgpo_similarity_entry();
AnalysisEntry a2tgpo_gain_entry();
AnalysisEntry a2tgpo_clip_entry();
AnalysisEntry a2tgpo_sweep_entry();
AnalysisEntry a2tgpo_lengths_entry();
AnalysisEntry aent_sparse_entry();
AnalysisEntry actfocus_energy_entry();
AnalysisEntry actfocus_signals_entry();
AnalysisEntry actfocus_weights_entry();
AnalysisEntry actfocus_ablation_entry();
AnalysisEntry actfocus_sweep_entry();

}  // namespace carnot
