// tests/device/small_recipe.h -- a run with two steps of everything, small enough for any device.
#pragma once

namespace carnot::testing {

inline constexpr const char* kSmallRecipe = R"(
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
objective: {entropy_coefficient: 0.01, kl_coefficient: 0.01}
rollout: {group_size: 3, max_context_tokens: 320, max_response_tokens: 24}
train: {steps: 2, groups_per_step: 3, learning_rate: 3e-3, mini_batches: 2, micro_batch_tokens: 400}
sft: {steps: 2, batch_tokens: 600}
eval: {tasks: 2}
)";

}  // namespace carnot::testing
