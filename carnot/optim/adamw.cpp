#include "carnot/optim/adamw.h"

#include <utility>

#include "carnot/optim/norm.h"

namespace carnot {

std::vector<WeightPart> whole_weights(const Optimizer::Parameters& parameters) {
  std::vector<WeightPart> parts;
  for (const auto& [name, tensor] : parameters)
    parts.push_back({.name = name, .values = tensor, .decays = tensor.dim() >= 2});
  return parts;
}

AdamW::AdamW(Parameters parameters, const AdamWOptions& options) : parts_(whole_weights(parameters), options) {
  for (auto& [name, tensor] : parameters) tensors_.push_back(std::move(tensor));
}

StepReport AdamW::step(double learning_rate) {
  std::vector<at::Tensor> gradients;
  for (at::Tensor& tensor : tensors_) gradients.push_back(std::exchange(tensor.mutable_grad(), at::Tensor()));
  return parts_.step(learning_rate, gradients, global_norm(gradients));
}

}  // namespace carnot
