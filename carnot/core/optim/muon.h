// optim/muon.h -- Muon: matrices move along their orthogonalised momentum (Jordan et al. 2024), scaled to the size of
// AdamW's updates (Liu et al. 2025, "Muon is Scalable for LLM Training", equation 4), so that one learning rate serves
// both. Embedding, head, norms and biases are AdamW's.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "carnot/core/optim/options.h"
#include "carnot/core/optim/update_rule.h"

namespace carnot {

/// Keeps the mean of gradients of a matrix, what AdamW keeps of all else.
std::unique_ptr<UpdateRule> make_muon(const OptimizerOptions& options);

/// Brings the singular values of a matrix near 1 (0.7 to 1.2) and leaves its singular vectors, in place: five
/// Newton-Schulz steps of degree five, in the matrix's own type. A matrix of zeros stays so. REQUIRES: contiguous,
/// float32 or float64. On the CPU the same bits on any number of threads.
void orthogonalise(at::Tensor& matrix_MN);

}  // namespace carnot
