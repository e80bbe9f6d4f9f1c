// testing/model_rollout.h -- rollouts of scripted environments under a small model, and the definition of what is
// measured of a token. Needs LibTorch.
#pragma once

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "carnot/core/engine/decoder_runner.h"
#include "testing/scripted_rollout.h"
#include "testing/small_model.h"

namespace carnot::testing {

inline Model qwen3_model(at::ScalarType type, std::uint64_t seed = 3) {
  return small_model({.family = "qwen3", .type = type, .seed = seed});
}

struct RolloutCase {
  int max_batch_tokens = 200;
  int num_blocks = 400;
  int num_states = 100;       ///< if the model has them
  int num_window_blocks = 0;  ///< likewise
  std::optional<AnswerScoring> answer_scoring{};
  ScriptedOptions script{};
};

inline std::vector<Group> groups_of(const Model& model, double temperature, const BranchPolicy& policy = *independent(),
                                    const RolloutCase& as = {}) {
  DecoderRunner engine_policy(
      model, {.blocks = as.num_blocks, .states = as.num_states, .window_blocks = as.num_window_blocks});
  Engine engine(engine_policy,
                {.max_batch_tokens = as.max_batch_tokens, .drawable_tokens = small_tokenizer().vocab_size()});
  const RolloutOptions options{
      .group_size = 4, .sampling = {.temperature = temperature}, .answer_scoring = as.answer_scoring};
  return roll_out(engine, small_chat(), policy, scripted_tasks(2, as.script), options, kRolloutKey).groups;
}

/// By definition: the whole prefix through the model for one token, softmax in double over its logits.
struct PlainStatistics {
  double log_prob = 0, entropy = 0, logsumexp = 0;
};

inline PlainStatistics plain_statistics(const Model& model, std::span<const TokenId> prefix, TokenId target,
                                        double temperature) {
  const at::NoGradGuard no_grad;
  std::vector<std::int64_t> tokens(prefix.begin(), prefix.end()), positions;
  for (std::size_t i = 0; i < tokens.size(); ++i) positions.push_back(static_cast<std::int64_t>(i));
  const at::Tensor hidden = model.hidden(at::tensor(tokens, at::kLong), at::tensor(positions, at::kLong),
                                         PackedAttention{.offsets = {0, static_cast<int>(tokens.size())}});
  const at::Tensor logits =
      at::matmul(model.head().to(at::kDouble), hidden.select(0, hidden.size(0) - 1).to(at::kDouble)).contiguous();
  const std::span<const double> z(logits.const_data_ptr<double>(), logits.numel());
  PlainStatistics out;
  double sum = 0;
  for (double logit : z) sum += std::exp(logit / temperature);
  out.logsumexp = std::log(sum);
  for (double logit : z) {
    const double log_p = logit / temperature - out.logsumexp;
    out.entropy -= std::exp(log_p) * log_p;
  }
  out.log_prob = z[target] / temperature - out.logsumexp;
  return out;
}

}  // namespace carnot::testing
