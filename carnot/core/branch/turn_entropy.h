// branch/turn_entropy.h -- the entropy of a turn's first tokens, as ARPO (arXiv:2507.19849) measures it.
//
// A SUM over tokens, divided by the logarithm of the vocabulary size: longer turns count more, up to `tokens`.
#pragma once

#include <span>
#include <vector>

namespace carnot {

/// Sum of the full-softmax entropies (nats) of the first `tokens` sampled tokens, over ln(vocabulary). REQUIRES:
/// vocabulary > 1.
double turn_entropy(std::span<const double> token_entropies, int tokens, int vocabulary);

/// The same from the log-probabilities of candidates, as an inference engine returns them: -sum p ln p over all
/// candidates of the first `tokens` tokens, without renormalisation. REQUIRES: vocabulary > 1.
double turn_entropy_of_candidates(std::span<const std::vector<double>> candidate_log_probs, int tokens, int vocabulary);

}  // namespace carnot
