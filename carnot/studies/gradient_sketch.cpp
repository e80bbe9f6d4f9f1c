#include "carnot/studies/gradient_sketch.h"

#include <ATen/TensorOperators.h>

#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/train/packing.h"

namespace carnot {
namespace {

/// SplitMix64's finaliser (Steele et al. 2014).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

Sketch sketch_of(const at::Tensor& gradient, std::uint64_t key) {
  Sketch sketch(kSketchNumbers, 0.0);
  const at::Tensor values = gradient.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* from = values.const_data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    const std::uint64_t bits = mixed(key + static_cast<std::uint64_t>(i + 1) * 0x9E3779B97F4A7C15);
    sketch[bits % kSketchNumbers] += (bits >> 63) != 0 ? -from[i] : from[i];
  }
  return sketch;
}

}  // namespace

Sketch sketch_of_gradients(const Model& model, std::uint64_t seed) {
  const std::vector<NamedTensor> weights = model.trained();
  std::vector<Sketch> parts(weights.size());
  kernel_pool().run(std::ssize(weights), [&](std::int64_t w) {
    const at::Tensor& gradient = weights[static_cast<std::size_t>(w)].tensor.grad();
    if (gradient.defined())
      parts[static_cast<std::size_t>(w)] =
          sketch_of(gradient, derive_seed(seed, "gradient sketch", static_cast<std::uint64_t>(w)));
  });
  Sketch sum(kSketchNumbers, 0.0);
  for (const Sketch& part : parts)
    for (std::size_t i = 0; i < part.size(); ++i) sum[i] += part[i];
  return sum;
}

Sketch sketch_of_trajectory(const Model& model, const Trajectory& trajectory, const Credit& credit,
                            const StatisticsOptions& options, std::uint64_t seed) {
  const auto clear = [&] {
    for (const NamedTensor& weight : model.trained()) weight.tensor.mutable_grad().reset();
  };
  clear();
  const std::vector<int> only{0};
  for (const MicroBatch& batch : pack(std::span(&trajectory, 1), CreditTable{credit}, only, {})) {
    const LossInputs inputs = policy_inputs(model, batch, options);
    const at::Tensor credited = batch.inputs.advantage_T * batch.inputs.weight_T;
    (inputs.logprob_T.to(at::kCPU, at::kDouble) * credited).sum().backward();
  }
  Sketch sketch = sketch_of_gradients(model, seed);
  clear();
  return sketch;
}

}  // namespace carnot
