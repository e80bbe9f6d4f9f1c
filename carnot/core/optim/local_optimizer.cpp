#include "carnot/core/optim/local_optimizer.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "carnot/core/optim/norm.h"

namespace carnot {
namespace {

std::vector<WeightPart> whole_weights(const std::vector<Weight>& weights) {
  std::vector<WeightPart> parts;
  for (const Weight& weight : weights)
    parts.push_back({.name = weight.name, .values = weight.values, .kind = weight.kind()});
  return parts;
}

}  // namespace

LocalOptimizer::LocalOptimizer(const std::vector<Weight>& weights, const OptimizerOptions& options)
    : weights_(weights), parts_(whole_weights(weights), options) {}

StepReport LocalOptimizer::step(double learning_rate) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (Weight& weight : weights_) gradients.push_back(std::exchange(weight.values.mutable_grad(), at::Tensor()));
  const StepReport report = parts_.begin(learning_rate, global_norm(gradients));
  for (std::size_t i = 0; !report.skipped && i < weights_.size(); ++i) {
    if (!parts_.rule().needs_matrix(weights_[i].kind())) {
      parts_.update(i, gradients[i]);
      continue;
    }
    at::Tensor direction = parts_.direction(i, gradients[i]);
    parts_.rule().finish_direction(direction);
    parts_.move(i, direction);
  }
  return report;
}

}  // namespace carnot
