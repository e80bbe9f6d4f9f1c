// loss/reduction.h -- token losses to one number, by shares: the reduced loss is the sum of share x loss.
//
// Denominators are the whole step's (Denominators in loss/loss.h), so shares add up over micro-batches.
#pragma once

#include <ATen/core/Tensor.h>

#include "carnot/core/loss/loss.h"

namespace carnot {

/// Which denominators: the policy loss counts tokens by their credit weight, KL, entropy and value loss by one each.
enum class Counting { ByWeight, ByToken };

/// The share of each token. w: its weight, W: the step's sum of weights, W_i: its sequence's, N: sequences.
///   TokenMean               w / W
///   SequenceMeanTokenMean   w / (W_i N)
///   SequenceMeanTokenSum    w / N
///   TokenSumOverConstant    w / constant
/// Where a denominator is 0 there is nothing to divide, and the share is 0.
at::Tensor token_shares(Reduction reduction, Counting counting, const LossInputs& inputs, const Denominators& step);

}  // namespace carnot
