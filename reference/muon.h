// reference/muon.h -- Muon of one matrix (Jordan et al. 2024; scale of arXiv:2502.16982, equation 4), loop by loop.
#pragma once

#include <vector>

namespace carnot::reference {

using MuonMatrix = std::vector<std::vector<double>>;

struct MuonSettings {
  double learning_rate = 0, momentum = 0, weight_decay = 0;
};

/// Five Newton-Schulz steps.
MuonMatrix orthogonalised(const MuonMatrix& matrix);

/// One update by a gradient that was clipped before. `mean` is the momentum, zeros before the first update.
void muon_step(const MuonSettings& settings, const MuonMatrix& gradient, MuonMatrix& weight, MuonMatrix& mean);

}  // namespace carnot::reference
