// rollout/forked_log_probs.h -- answers after contexts that grow from one another: each context is computed once, each
// answer on a fork of its KV blocks and its state.
//
// If the model is batch-invariant (nn/model.h), the result equals that of a pass over every context from its start, bit
// for bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/data/tokens.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/rollout/log_prob_pass.h"

namespace carnot {

/// Tokens that follow those of another context, or nothing. REQUIRES: not empty.
struct SharedContext {
  int parent = -1;  ///< index of an earlier context; -1: none
  std::vector<TokenId> tokens{};
};

/// What is scored after a context: the answer's tokens, given the context and the lead. REQUIRES: the answer is not
/// empty.
struct ForkedAnswer {
  int context = 0;
  std::vector<TokenId> lead{};
  std::vector<TokenId> tokens{};
};

/// Log-probability of every answer's tokens, in the order of the answers. Its KV cache exists for the call only and
/// holds the contexts' tokens and `options.max_tokens` rows of answers; where the model has states, one of every
/// context and of every answer that is measured together with others.
std::vector<double> forked_log_probs(const Model& model, std::span<const SharedContext> contexts,
                                     std::span<const ForkedAnswer> answers, const LogProbPassOptions& options);

}  // namespace carnot
