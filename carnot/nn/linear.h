// nn/linear.h -- products with weights: up to three that share their input, with biases and adapters.
//
// Batch-invariant kernels of carnot/kernel: CPU; float32, float64 and bfloat16; contiguous rows. Works with and without
// grad mode; without it nothing is saved. Of bfloat16, sums are float32: results and gradients of activations are
// rounded once, gradients of weights stay float32.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <span>
#include <string>

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

/// True where the kernels of carnot/kernel take this tensor.
bool own_kernels_take(const at::Tensor& x);

/// The kernel sets that this machine chose for tensors of this type, as "avx512, products amx". Bits are equal where
/// they are.
std::string kernel_sets(at::ScalarType type);

/// Up to three weights [N_i, K] that share their input, with biases [N_i] or none (all or none), and adapters on any.
struct LinearWeights {
  std::array<at::Tensor, 3> weight{};
  std::array<at::Tensor, 3> bias{};
  std::array<Adapter, 3> adapter{};
  double adapter_scale = 1;
};

/// x [T, K] times the weights, side by side: [T, N_0 + N_1 + N_2]; biases and adapter_scale (x A^T) B^T added.
at::Tensor linear(const at::Tensor& x_TK, const LinearWeights& weights, PackedWeights& packed, KernelChoice kernels);

/// From now on `packed` holds these weights of one product and nothing else does: half of their memory is given back,
/// and the product's bits stay. For models that only compute, without gradients. REQUIRES: own_kernels_take() them,
/// nobody reads them again but linear().
void keep_packed_alone(std::span<const at::Tensor> weights, PackedWeights& packed);

/// a b by LibTorch's operators; of bfloat16 operands float32, never rounded.
at::Tensor unrounded_product(const at::Tensor& a, const at::Tensor& b);

/// Logits [T, V], to sample from: bfloat16 hidden states and weights give float32 logits, which are never rounded
/// (KernelChoice::Portable rounds them). Carnot's kernels for bfloat16 take the segments' statistics, with row t
/// divided by 1 / inverse_temperature_T[t].
LogitRows head_logits(const at::Tensor& hidden_TH, const at::Tensor& head_VH,
                      std::span<const float> inverse_temperature_T, PackedWeights& packed, KernelChoice kernels);

}  // namespace carnot
