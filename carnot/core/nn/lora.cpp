#include "carnot/core/nn/lora.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/nn/model.h"

namespace carnot {
namespace {

bool names(const LoraOptions& lora, std::string_view projection) {
  return std::find(lora.targets.begin(), lora.targets.end(), projection) != lora.targets.end();
}

std::string prefix_of(std::size_t layer, std::size_t projection) {
  const std::string block = projection < static_cast<std::size_t>(Projection::Gate) ? "self_attn." : "mlp.";
  return "model.layers." + std::to_string(layer) + "." + block +
         std::string(kProjectionNames[static_cast<std::size_t>(projection)]);
}

/// Uniform in [-bound, bound) from the tensor's own stream, drawn on the CPU in double, like the weights.
at::Tensor uniform(at::IntArrayRef shape, double bound, std::uint64_t seed, const std::string& name,
                   const at::TensorOptions& options) {
  RandomStream stream(derive_seed(seed, name));
  at::Tensor values = at::empty(shape, at::kDouble);
  double* data = values.data_ptr<double>();
  for (std::int64_t i = 0; i < values.numel(); ++i) data[i] = bound * (2 * stream.uniform() - 1);
  return values.to(options);
}

}  // namespace

const at::Tensor& Model::Layer::weight(Projection projection) const {
  const std::array<const at::Tensor*, kProjectionNames.size()> all{&query, &key, &value, &output, &gate, &up, &down};
  return *all[static_cast<std::size_t>(projection)];
}

void Model::add_adapters(const LoraOptions& lora, std::uint64_t seed) {
  CARNOT_CHECK_GT(lora.rank, 0);
  lora_ = lora;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (std::size_t p = 0; p < kProjectionNames.size(); ++p) {
      layers_[i].adapters[p] = {};
      if (!names(lora, kProjectionNames[p])) continue;
      const at::Tensor& weight = layers_[i].weight(static_cast<Projection>(p));
      const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
      layers_[i].adapters[p] = {
          .a = uniform({lora.rank, weight.size(1)}, bound, seed, prefix_of(i, p) + ".lora_A", options()),
          .b = at::zeros({weight.size(0), lora.rank}, options())};
    }
  }
}

std::vector<NamedTensor> Model::adapters() const {
  std::vector<NamedTensor> all;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    for (std::size_t p = 0; p < kProjectionNames.size(); ++p) {
      const Adapter& adapter = layers_[i].adapters[p];
      if (!adapter.a.defined()) continue;
      all.push_back({prefix_of(i, p) + ".lora_A.weight", adapter.a});
      all.push_back({prefix_of(i, p) + ".lora_B.weight", adapter.b});
    }
  }
  return all;
}

void Model::copy_adapters(const Model& from) {
  lora_ = from.lora_;
  for (std::size_t i = 0; i < layers_.size(); ++i)
    for (std::size_t p = 0; p < kProjectionNames.size(); ++p) {
      const Adapter& adapter = from.layers_[i].adapters[p];
      if (adapter.a.defined()) layers_[i].adapters[p] = {adapter.a.detach().clone(), adapter.b.detach().clone()};
    }
}

Model Model::frozen() const {
  if (!has_adapters()) return clone();
  Model copy = *this;
  copy.copy_adapters(*this);
  return copy;
}

Model Model::merged() const {
  Model copy = clone();
  const at::NoGradGuard no_grad;
  for (Layer& layer : copy.layers_) {
    for (std::size_t p = 0; p < kProjectionNames.size(); ++p) {
      const Adapter& adapter = layer.adapters[p];
      if (!adapter.a.defined()) continue;
      const at::Tensor& weight = layer.weight(static_cast<Projection>(p));
      const at::Tensor update = at::matmul(adapter.b.to(at::kDouble), adapter.a.to(at::kDouble)) * lora_.scale();
      weight.copy_(weight.to(at::kDouble) + update);
      layer.adapters[p] = {};
    }
  }
  copy.lora_ = {};
  return copy;
}

}  // namespace carnot
