#include "carnot/core/nn/random_weights.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <functional>
#include <vector>

#include "carnot/core/base/random.h"

namespace carnot {
namespace {

void fill(const NamedTensor& weight, std::uint64_t seed, const std::function<double(RandomStream&)>& draw) {
  RandomStream stream(derive_seed(seed, weight.name));
  std::vector<double> values(static_cast<std::size_t>(weight.tensor.numel()));
  for (double& value : values) value = draw(stream);
  weight.tensor.copy_(at::tensor(values, at::kDouble).view(weight.tensor.sizes()));
}

double log_rate(RandomStream& stream) { return std::log(0.01 + 15.99 * stream.uniform()); }

}  // namespace

void fill_with_random_weights(std::span<const NamedTensor> parameters, const ModelConfig& config, std::uint64_t seed,
                              double init_std) {
  const at::NoGradGuard no_grad;
  const double into_residual = init_std / std::sqrt(2.0 * config.num_layers);
  const double of_taps = 1 / std::sqrt(static_cast<double>(config.convolution_width));
  const auto deviation_of = [&](const NamedTensor& weight) {
    if (weight.tensor.dim() == 3) return of_taps;
    return weight.name.ends_with("o_proj.weight") || weight.name.ends_with("down_proj.weight") ? into_residual
                                                                                               : init_std;
  };
  const double norm_offset = find_model_family(config.family)->norms_add_one ? 1 : 0;
  for (const NamedTensor& weight : parameters) {
    const std::string& name = weight.name;
    if (name.ends_with("A_log"))
      fill(weight, seed, log_rate);
    else if (name.ends_with("bias"))
      weight.tensor.zero_();
    else if (weight.tensor.dim() == 1)
      weight.tensor.fill_(name.ends_with("linear_attn.norm.weight") ? 1 : 1 - norm_offset);
    else
      fill(weight, seed, [&](RandomStream& stream) { return deviation_of(weight) * stream.normal(); });
  }
}

}  // namespace carnot
