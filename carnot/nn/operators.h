// nn/operators.h -- the decoder's operators on tensors, with gradients, over the kernels of carnot/kernel or
// LibTorch's.
//
// Own kernels: CPU, float32 and float64, contiguous rows; a row's bits depend neither on other rows nor on threads.
// Everything here works with or without grad mode; without it nothing is saved.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "carnot/nn/attention_plan.h"
#include "carnot/nn/lora.h"
#include "carnot/nn/model.h"

namespace carnot {

/// Weights cut into the panels that gemm reads, packed again when a weight has changed (by its version counter: code
/// that writes through data_ptr must bump it). Belongs to one model; not thread-safe.
class PackedWeights {
 public:
  PackedWeights();
  ~PackedWeights();
  PackedWeights(PackedWeights&&) noexcept;
  PackedWeights& operator=(PackedWeights&&) noexcept;

  struct Cache;
  Cache& cache() { return *cache_; }

 private:
  std::unique_ptr<Cache> cache_;
};

/// Up to three weights [N_i, K] that share their input, with biases [N_i] or none (all or none), and adapters on any.
struct LinearWeights {
  std::array<at::Tensor, 3> weight{};
  std::array<at::Tensor, 3> bias{};
  std::array<Adapter, 3> adapter{};
  double adapter_scale = 1;
};

/// x [T, K] times the weights, side by side: [T, N_0 + N_1 + N_2]; biases and adapter_scale (x A^T) B^T added.
at::Tensor linear(const at::Tensor& x_TK, const LinearWeights& weights, PackedWeights& packed, KernelChoice kernels);

/// x * rsqrt(mean(x^2) + epsilon) * weight over the last dimension.
at::Tensor rms_norm(const at::Tensor& x_TH, const at::Tensor& weight_H, double epsilon, KernelChoice kernels);

/// silu(gate) * up, where a row of x holds gate and up side by side: [T, 2 F] to [T, F].
at::Tensor swiglu(const at::Tensor& gate_up_TF, KernelChoice kernels);

/// Rows of the table: [T, H].
at::Tensor embed(const at::Tensor& table_VH, const at::Tensor& tokens_T, KernelChoice kernels);

/// Cosine and sine of the rotary positions' angles, computed once for positions [0, count). Frequencies as
/// config.rope_scaling says: positions divided by a factor (linear), only slow frequencies divided, as Llama 3.1 does
/// (llama3) or as YaRN does (arXiv 2309.00071, section 3.4).
struct RotaryTable {
  at::Tensor cosine;  ///< [count, head_dim / 2]
  at::Tensor sine;
};
RotaryTable rotary_table(const ModelConfig& config, std::int64_t count, const at::TensorOptions& options);

struct AttentionWeights {
  at::Tensor query_norm{};  ///< [head_dim]; undefined where the family has none
  at::Tensor key_norm{};
};

/// Causal self-attention over projected rows qkv [T, (heads + 2 kv_heads) head_dim]: norms, rotation, attention.
/// [T, heads * head_dim]. With a paged plan the layer's keys and values are written into the cache; no gradient there.
at::Tensor self_attention(const ModelConfig& config, int layer, const at::Tensor& qkv_TD,
                          const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions_T,
                          const AttentionPlan& plan, KernelChoice kernels);

/// True where the own kernels take this tensor.
bool own_kernels_take(const at::Tensor& x);

}  // namespace carnot
