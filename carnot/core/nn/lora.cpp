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
  const std::array<const at::Tensor*, kProjectionNames.size()> all{&input, &input_z, &input_b, &input_a, &query, &key,
                                                                   &value, &output,  &gate,    &up,      &down};
  return *all[static_cast<std::size_t>(projection)];
}

template <class Layers, class Use>
void Model::for_each_projection(Layers& layers, const Use& use) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto& layer = layers[i];
    const std::string prefix = "model.layers." + std::to_string(i) + ".";
    for (std::size_t p = 0; p < kProjectionNames.size(); ++p) {
      const std::string mixer = std::string(mixer_name(layer.mixer)) + ".";
      const std::string block = p < static_cast<std::size_t>(Projection::Gate) ? mixer : "mlp.";
      const auto projection = static_cast<Projection>(p);
      if (!layer.weight(projection).defined()) continue;
      use(prefix + block + std::string(kProjectionNames[p]), projection, layer.weight(projection), layer.adapters[p]);
    }
    for (std::size_t e = 0; e < layer.experts.size(); ++e) {
      auto& expert = layer.experts[e];
      const std::string name = prefix + "mlp.experts." + std::to_string(e) + ".";
      use(name + "gate_proj", Projection::Gate, expert.gate, expert.adapters[0]);
      use(name + "up_proj", Projection::Up, expert.up, expert.adapters[1]);
      use(name + "down_proj", Projection::Down, expert.down, expert.adapters[2]);
    }
  }
}

void Model::add_adapters(const LoraOptions& lora, std::uint64_t seed) {
  CARNOT_CHECK_GT(lora.rank, 0);
  lora_ = lora;
  const auto add = [&](const std::string& name, Projection projection, const at::Tensor& weight, Adapter& adapter) {
    adapter = {};
    if (!names(lora, kProjectionNames[static_cast<std::size_t>(projection)])) return;
    const double bound = 1 / std::sqrt(static_cast<double>(weight.size(1)));
    adapter = {.a = uniform({lora.rank, weight.size(1)}, bound, seed, name + ".lora_A", options()),
               .b = at::zeros({weight.size(0), lora.rank}, options())};
  };
  for_each_projection(layers_, add);
}

std::vector<NamedTensor> Model::adapters() const {
  std::vector<NamedTensor> all;
  for_each_projection(layers_, [&](const std::string& name, Projection, const at::Tensor&, const Adapter& adapter) {
    if (!adapter.a.defined()) return;
    all.push_back({name + ".lora_A.weight", adapter.a});
    all.push_back({name + ".lora_B.weight", adapter.b});
  });
  return all;
}

void Model::copy_adapters(const Model& from) {
  lora_ = from.lora_;
  std::vector<Adapter> others;
  for_each_projection(from.layers_, [&](const std::string&, Projection, const at::Tensor&, const Adapter& adapter) {
    others.push_back(adapter);
  });
  std::size_t next = 0;
  for_each_projection(layers_, [&](const std::string&, Projection, const at::Tensor&, Adapter& adapter) {
    const Adapter& other = others[next++];
    if (other.a.defined()) adapter = {other.a.detach().clone(), other.b.detach().clone()};
  });
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
  for_each_projection(copy.layers_, [&](const std::string&, Projection, const at::Tensor& weight, Adapter& adapter) {
    if (!adapter.a.defined()) return;
    const at::Tensor update = at::matmul(adapter.b.to(at::kDouble), adapter.a.to(at::kDouble)) * lora_.scale();
    weight.copy_(weight.to(at::kDouble) + update);
    adapter = {};
  });
  copy.lora_ = {};
  return copy;
}

}  // namespace carnot
