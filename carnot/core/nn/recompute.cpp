#include "carnot/core/nn/recompute.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace carnot {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Block = std::function<at::Tensor(const at::Tensor&)>;

struct HeldBlock : torch::CustomClassHolder {
  explicit HeldBlock(Block held) : block(std::move(held)) {}
  Block block;
};

struct RecomputedBlock : torch::autograd::Function<RecomputedBlock> {
  /// `anchor` requires a gradient, so that the block gets a backward pass even if x is frozen and its weights are not.
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor&, Block block) {
    const at::Tensor y = block(x);  // no gradients here: nothing is saved
    context->save_for_backward({x});
    context->saved_data["block"] = c10::IValue::make_capsule(c10::make_intrusive<HeldBlock>(std::move(block)));
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto capsule = context->saved_data["block"].toCapsule();
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_(context->needs_input_grad(0));
    at::Tensor y;
    {
      const at::AutoGradMode with_gradients(true);
      y = static_cast<HeldBlock*>(capsule.get())->block(x);
    }
    // This inner pass adds the weights' gradients once, as the outer one would.
    if (y.requires_grad()) torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor recompute_in_backward(const at::Tensor& x, std::function<at::Tensor(const at::Tensor&)> block) {
  const at::Tensor anchor = at::empty({0}, x.options()).requires_grad_(true);
  return RecomputedBlock::apply(x, anchor, std::move(block));
}

}  // namespace carnot
