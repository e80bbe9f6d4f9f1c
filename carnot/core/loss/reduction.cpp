#include "carnot/core/loss/reduction.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

double inverse_or_zero(double denominator) { return denominator > 0 ? 1 / denominator : 0; }

at::Tensor inverse_by_sequence(const std::vector<double>& of_sequence, const LossInputs& inputs) {
  CARNOT_CHECK_EQ(static_cast<std::int64_t>(of_sequence.size()), inputs.num_sequences);
  at::Tensor inverse_S = at::empty({inputs.num_sequences}, at::kDouble);
  for (std::size_t s = 0; s < of_sequence.size(); ++s)
    inverse_S.mutable_data_ptr<double>()[s] = inverse_or_zero(of_sequence[s]);
  return inverse_S.index_select(0, inputs.sequence_T);
}

}  // namespace

at::Tensor token_shares(Reduction reduction, Counting counting, const LossInputs& inputs, const Denominators& step) {
  const bool by_weight = counting == Counting::ByWeight;
  const at::Tensor count_T = by_weight ? inputs.weight_T : at::ones_like(inputs.weight_T);
  switch (reduction) {
    case Reduction::TokenMean: return count_T * inverse_or_zero(by_weight ? step.weight : step.tokens);
    case Reduction::SequenceMeanTokenMean:
      return count_T * inverse_by_sequence(by_weight ? step.sequence_weight : step.sequence_tokens, inputs) *
             inverse_or_zero(step.sequences);
    case Reduction::SequenceMeanTokenSum: return count_T * inverse_or_zero(step.sequences);
    case Reduction::TokenSumOverConstant: return count_T * inverse_or_zero(step.constant);
  }
  CARNOT_CHECK(false, "every reduction has a case");
  return {};
}

}  // namespace carnot
