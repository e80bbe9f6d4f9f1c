// Every recorded case of AEnt's clamped entropy and of its whole loss, from logits.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/loss/loss.h"
#include "carnot/core/nn/token_statistics.h"
#include "recorded_cases.h"

namespace carnot {
namespace {

using testing::expect_close;
using testing::for_recorded;

using Rows = std::vector<std::vector<double>>;

at::Tensor tensor_of(const std::vector<double>& values) {
  return at::tensor(at::ArrayRef<double>(values), at::kDouble);
}

at::Tensor matrix_of(const Rows& rows) {
  std::vector<at::Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(tensor_of(row));
  return at::stack(tensors);
}

/// Statistics of rows of logits: their product with the identity.
TokenStatistics statistics_of(const at::Tensor& logits, const std::vector<std::int64_t>& labels,
                              const StatisticsOptions& options) {
  return token_statistics(logits, at::eye(logits.size(1), at::kDouble),
                          at::tensor(at::ArrayRef<std::int64_t>(labels), at::kLong), options);
}

/// Of equal logits the source removes any; so gradients are compared up to the order of equal logits.
void expect_gradients(const at::Tensor& logits, const Json& expected) {
  for (std::int64_t t = 0; t < logits.size(0); ++t) {
    std::vector<std::pair<double, double>> actual, recorded;
    for (std::int64_t v = 0; v < logits.size(1); ++v) {
      const double z = logits[t][v].item<double>();
      actual.emplace_back(z, logits.grad()[t][v].item<double>());
      recorded.emplace_back(z, expected[t][v].get<double>());
    }
    std::sort(actual.begin(), actual.end());
    std::sort(recorded.begin(), recorded.end());
    for (std::size_t v = 0; v < actual.size(); ++v)
      expect_close(actual[v].second, recorded[v].second, "row " + std::to_string(t));
  }
}

TEST(PublishedEntropy, ClampedEntropyAndItsGradient) {
  int with_ties = 0;
  for_recorded("aent_entropy", "aent_clamped_entropy", 35, [&](const Json& recorded) {
    const at::Tensor logits = matrix_of(recorded["logits"].get<Rows>()).requires_grad_();
    const double share = recorded["options"]["p"];
    EXPECT_EQ(clamped_entries(share, logits.size(1)), recorded["options"]["removed"].get<std::int64_t>());
    const TokenStatistics statistics =
        statistics_of(logits, std::vector<std::int64_t>(logits.size(0)), {.entropy_clamp = share});
    const at::Tensor entropy_T = share > 0 ? statistics.clamped_entropy_T : statistics.entropy_T;
    for (std::int64_t t = 0; t < logits.size(0); ++t)
      expect_close(entropy_T[t].item<double>(), recorded["expected"]["entropy"][t], "entropy");
    entropy_T.sum().backward();
    expect_gradients(logits, recorded["expected"]["grad_logits"]);
    with_ties += recorded["options"]["ties"].get<bool>() ? 1 : 0;
  });
  EXPECT_EQ(with_ties, 7);
}

/// The loss's inputs, one entry for each position whose mask is set.
struct AentTokens {
  explicit AentTokens(const Json& recorded) {
    const Json& cap = recorded["options"]["behav_imp_weight_cap"];
    for (std::size_t t = 0; t < recorded["mask"].size(); ++t) {
      if (recorded["mask"][t] == 0) continue;
      const double prox = recorded["logp_prox"][t], rollout = recorded["logp_behave"][t];
      // The source drops the surrogate of tokens whose weight exceeds the cap; Carnot would truncate the weight.
      const bool drops = !cap.is_null() && std::exp(prox - rollout) > cap.get<double>();
      places.push_back(static_cast<std::int64_t>(t));
      labels.push_back(recorded["labels"][t]);
      old.push_back(prox);
      behaviour.push_back(rollout);
      advantage.push_back(drops ? 0 : recorded["advantage"][t].get<double>());
      dropped += drops ? 1 : 0;
    }
  }

  LossInputs inputs(const TokenStatistics& statistics) const {
    const at::Tensor ones_T = at::ones({static_cast<std::int64_t>(places.size())}, at::kDouble);
    const at::Tensor zeros_T = at::zeros({ones_T.numel()}, at::kLong);
    LossInputs inputs;
    inputs.logprob_T = statistics.logprob_T;
    inputs.entropy_T = statistics.entropy_T;
    inputs.clamped_entropy_T = statistics.clamped_entropy_T;
    inputs.logprob_old_T = tensor_of(old);
    inputs.logprob_rollout_T = tensor_of(behaviour);
    inputs.advantage_T = tensor_of(advantage);
    inputs.weight_T = inputs.clip_scale_T = ones_T;
    inputs.turn_T = inputs.sequence_T = zeros_T;
    inputs.num_turns = inputs.num_sequences = 1;
    return inputs;
  }

  std::vector<std::int64_t> places{}, labels{};
  std::vector<double> old{}, behaviour{}, advantage{};
  int dropped = 0;
};

ObjectiveOptions options_of(const Json& o) {
  return {.clip_low = o["eps_clip"],
          .clip_high = o["eps_clip_higher"].is_null() ? o["eps_clip"] : o["eps_clip_higher"],
          .dual_clip = o["c_clip"].is_null() ? 0.0 : o["c_clip"].get<double>(),
          .entropy_coefficient = o["entropy_coeff"],
          .entropy_clamp = o["entropy_clamp"],
          .importance_cap = o["behav_imp_weight_cap"].is_null() ? 1e9 : o["behav_imp_weight_cap"].get<double>()};
}

TEST(PublishedEntropy, WholeLossOfAent) {
  int with_dropped_tokens = 0;
  for_recorded("aent_loss", "aent_loss", 17, [&](const Json& recorded) {
    const ObjectiveOptions options = options_of(recorded["options"]);
    const at::Tensor logits = matrix_of(recorded["logits"].get<Rows>()).requires_grad_();
    const AentTokens tokens(recorded);
    const at::Tensor rows = logits.index_select(0, at::tensor(at::ArrayRef<std::int64_t>(tokens.places), at::kLong));
    const TokenStatistics statistics =
        statistics_of(rows, tokens.labels,
                      {.temperature = recorded["options"]["temperature"], .entropy_clamp = options.entropy_clamp});
    const auto count = static_cast<double>(tokens.places.size());
    const Loss loss = policy_loss(
        options, tokens.inputs(statistics),
        {.tokens = count, .weight = count, .sequences = 1, .sequence_weight = {count}, .sequence_tokens = {count}});
    expect_close(loss.total.item<double>(), recorded["expected"]["loss"], "loss");
    if (count == 0) return;
    loss.total.backward();
    expect_gradients(logits, recorded["expected"]["grad_logits"]);
    with_dropped_tokens += tokens.dropped > 0 ? 1 : 0;
  });
  EXPECT_EQ(with_dropped_tokens, 6);
}

}  // namespace
}  // namespace carnot
