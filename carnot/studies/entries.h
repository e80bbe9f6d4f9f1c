// studies/entries.h -- one function per analysis; each in the file of its name, sweeps of runs in sweeps.cpp.
#pragma once

#include <memory>

#include "carnot/studies/analysis.h"

namespace carnot {

std::unique_ptr<Analysis> aem_proxy();
std::unique_ptr<Analysis> aem_drift();
std::unique_ptr<Analysis> aem_theorem();
std::unique_ptr<Analysis> aem_transition();
std::unique_ptr<Analysis> aem_ablation();
std::unique_ptr<Analysis> aem_cost();
std::unique_ptr<Analysis> aepo_branches();
std::unique_ptr<Analysis> aepo_diversity();
std::unique_ptr<Analysis> aepo_clip();
std::unique_ptr<Analysis> aepo_budget();
std::unique_ptr<Analysis> aepo_ablation();
std::unique_ptr<Analysis> a2tgpo_similarity();
std::unique_ptr<Analysis> a2tgpo_gain();
std::unique_ptr<Analysis> a2tgpo_clip();
std::unique_ptr<Analysis> a2tgpo_sweep();
std::unique_ptr<Analysis> a2tgpo_lengths();
std::unique_ptr<Analysis> aent_sparse();
std::unique_ptr<Analysis> actfocus_energy();
std::unique_ptr<Analysis> actfocus_signals();
std::unique_ptr<Analysis> actfocus_weights();
std::unique_ptr<Analysis> actfocus_ablation();
std::unique_ptr<Analysis> actfocus_sweep();
std::unique_ptr<Analysis> credit_oracle();

}  // namespace carnot
