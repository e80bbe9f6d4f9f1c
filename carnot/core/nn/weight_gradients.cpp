#include "carnot/core/nn/weight_gradients.h"

#include <torch/csrc/autograd/variable.h>

namespace carnot {
namespace {

bool is_autograds(const at::Tensor& weight) {
  return !weight.requires_grad() || !weight.is_leaf() || torch::autograd::impl::post_acc_grad_hooks(weight) != nullptr;
}

}  // namespace

at::Tensor gradient_to_add_to(const at::Tensor& weight) {
  if (is_autograds(weight)) return {};
  const at::Tensor& there = weight.grad();
  const bool fits = there.defined() && there.is_contiguous() && there.scalar_type() == at::kFloat;
  return fits ? there : at::Tensor();
}

at::Tensor begin_gradient(const at::Tensor& weight, const at::Tensor& gradient) {
  if (is_autograds(weight) || weight.grad().defined()) return gradient;
  weight.mutable_grad() = gradient;
  return {};
}

}  // namespace carnot
