// nn/linear.h -- products with weights: up to three that share their input, with biases and adapters.
//
// Batch-invariant kernels of carnot/core/kernel: CPU; float32, float64 and bfloat16; contiguous rows. Works with and
// without grad mode; without it, nothing is saved. In bfloat16, sums are float32: results and gradients of
// activations are rounded once, gradients of weights stay float32.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "carnot/core/nn/lora.h"
#include "carnot/core/nn/model.h"

namespace carnot {

/// Weights cut into the panels that gemm reads, packed again when a weight has changed (by its version counter: code
/// that writes through data_ptr must increment it). Belongs to one model; not thread-safe.
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

/// True if the kernels of carnot/core/kernel support this tensor.
bool own_kernels_take(const at::Tensor& x);

/// The kernel sets that this machine uses for tensors of this type, for example "avx512, products amx". Machines with
/// equal sets compute equal bits.
std::string kernel_sets(at::ScalarType type);

/// Up to three weights [N_i, K] that share their input, with biases [N_i] on all or none, and optional adapters.
struct LinearWeights {
  std::array<at::Tensor, 3> weight{};
  std::array<at::Tensor, 3> bias{};
  std::array<Adapter, 3> adapter{};
  double adapter_scale = 1;
};

/// Computes the input of a product again, to the same bits, from tensors that are kept anyway.
using InputAgain = std::function<at::Tensor()>;

/// x [T, K] times the weights, concatenated: [T, N_0 + N_1 + N_2]; adds biases and adapter_scale (x A^T) B^T. With
/// `again`, the backward pass calls it instead of x being kept (Carnot's kernels; LibTorch's operators keep x).
at::Tensor linear(const at::Tensor& x_TK, const LinearWeights& weights, PackedWeights& packed, KernelChoice kernels,
                  InputAgain again = {});

/// From now on, only `packed` holds these weights of one product: half of their memory is released, and the product's
/// bits are unchanged. For inference-only models. REQUIRES: own_kernels_take() the weights, and only linear() reads
/// them again.
void keep_packed_alone(std::span<const at::Tensor> weights, PackedWeights& packed);

/// a b with LibTorch's operators; for bfloat16 operands, the result is float32, never rounded.
at::Tensor unrounded_product(const at::Tensor& a, const at::Tensor& b);

/// Logits [T, V], to sample from: bfloat16 hidden states and weights give float32 logits, which are never rounded
/// (KernelChoice::Portable rounds them). Carnot's bfloat16 kernels also measure the segments, with row t divided by 1 /
/// inverse_temperature_T[t].
LogitRows head_logits(const at::Tensor& hidden_TH, const at::Tensor& head_VH,
                      std::span<const float> inverse_temperature_T, PackedWeights& packed, KernelChoice kernels);

}  // namespace carnot
