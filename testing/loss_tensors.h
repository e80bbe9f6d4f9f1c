// testing/loss_tensors.h -- tokens written out one by one, as the tensors that the objective reads. Header only,
// because this library does not link LibTorch.
#pragma once

#include <ATen/Functions.h>

#include <cstdint>
#include <vector>

#include "carnot/core/loss/loss.h"
#include "reference/policy_loss.h"

namespace carnot::testing {

/// The denominators of `sequences` as one step; per-trajectory ones of the sequences [first, last).
inline Denominators denominators_of(const reference::LossSequences& sequences, std::size_t first, std::size_t last,
                                    double constant) {
  Denominators step{.constant = constant};
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    double weight = 0;
    for (const auto& token : sequences[i]) weight += token.weight;
    const auto tokens = static_cast<double>(sequences[i].size());
    step.tokens += tokens;
    step.weight += weight;
    step.sequences += tokens > 0 ? 1 : 0;
    if (i < first || i >= last) continue;
    step.sequence_weight.push_back(weight);
    step.sequence_tokens.push_back(tokens);
  }
  return step;
}

/// The tokens of the sequences [first, last), with every signal; current-policy tensors require gradients.
inline LossInputs inputs_of(const reference::LossSequences& sequences, std::size_t first, std::size_t last,
                            at::ScalarType dtype = at::kDouble) {
  using reference::LossToken;
  std::vector<const LossToken*> tokens;
  std::vector<std::int64_t> turn, sequence;
  LossInputs inputs;
  for (std::size_t i = first; i < last; ++i) {
    int last_turn = -1;
    for (const LossToken& token : sequences[i]) {
      if (token.turn != last_turn) ++inputs.num_turns;
      last_turn = token.turn;
      tokens.push_back(&token);
      turn.push_back(inputs.num_turns - 1);
      sequence.push_back(static_cast<std::int64_t>(i - first));
    }
  }
  inputs.num_sequences = static_cast<std::int64_t>(last - first);
  const auto column = [&](double LossToken::* member) {
    at::Tensor values = at::empty({static_cast<std::int64_t>(tokens.size())}, at::kDouble);
    for (std::size_t t = 0; t < tokens.size(); ++t) values.mutable_data_ptr<double>()[t] = tokens[t]->*member;
    return values.to(dtype);
  };
  const auto indices = [](const std::vector<std::int64_t>& values) {
    return at::tensor(at::ArrayRef<std::int64_t>(values), at::kLong);
  };
  inputs.logprob_T = column(&LossToken::logprob).requires_grad_();
  inputs.entropy_T = column(&LossToken::entropy).requires_grad_();
  inputs.value_T = column(&LossToken::value).requires_grad_();
  inputs.logprob_old_T = column(&LossToken::logprob_old);
  inputs.logprob_rollout_T = column(&LossToken::logprob_rollout);
  inputs.logprob_reference_T = column(&LossToken::logprob_reference);
  inputs.value_old_T = column(&LossToken::value_old);
  inputs.advantage_T = column(&LossToken::advantage);
  inputs.weight_T = column(&LossToken::weight);
  inputs.clip_scale_T = column(&LossToken::clip_scale);
  inputs.value_target_T = column(&LossToken::value_target);
  inputs.turn_T = indices(turn);
  inputs.sequence_T = indices(sequence);
  return inputs;
}

inline LossInputs inputs_of(const reference::LossSequences& sequences, at::ScalarType dtype = at::kDouble) {
  return inputs_of(sequences, 0, sequences.size(), dtype);
}
inline Denominators denominators_of(const reference::LossSequences& sequences, double constant = 0) {
  return denominators_of(sequences, 0, sequences.size(), constant);
}

}  // namespace carnot::testing
