#include "carnot/core/optim/adamw.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "carnot/core/optim/chunks.h"

namespace carnot {
namespace {

class AdamW : public UpdateRule {
 public:
  explicit AdamW(const OptimizerOptions& options) : options_(options) {}

  std::vector<std::string> kept(WeightKind) const override { return {".first_moment", ".second_moment"}; }

  void update(const UpdateStep& step, const at::Tensor& gradient, at::Tensor& weight,
              std::span<at::Tensor> kept) const override {
    const auto t = static_cast<double>(step.number);
    const AdamWUpdate numbers{.gradient_scale = step.gradient_scale,
                              .beta1 = options_.beta1,
                              .beta2 = options_.beta2,
                              .epsilon = options_.epsilon,
                              .keep = step.keep,
                              .step_size = step.learning_rate / (1 - std::pow(options_.beta1, t)),
                              .inverse_root = 1 / std::sqrt(1 - std::pow(options_.beta2, t))};
    adamw_update(numbers, gradient, weight, kept[0], kept[1]);
  }

 private:
  OptimizerOptions options_;
};

template <class Number>
void update_on_cpu(const AdamWUpdate& u, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                   at::Tensor& second) {
  const Number* g = gradient.const_data_ptr<Number>();
  Number* w = weight.mutable_data_ptr<Number>();
  Number* m = first.mutable_data_ptr<Number>();
  Number* v = second.mutable_data_ptr<Number>();
  for_each_chunk(weight.numel(), [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    adamw_kernel(u, end - begin, g + begin, w + begin, m + begin, v + begin);
  });
}

}  // namespace

std::unique_ptr<UpdateRule> make_adamw(const OptimizerOptions& options) { return std::make_unique<AdamW>(options); }

void adamw_update_portable(const AdamWUpdate& u, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                           at::Tensor& second) {
  const at::Tensor g = gradient * u.gradient_scale;
  first.mul_(u.beta1).add_(g, 1 - u.beta1);
  second.mul_(u.beta2).addcmul_(g, g, 1 - u.beta2);
  const at::Tensor denominator = second.sqrt().mul_(u.inverse_root).add_(u.epsilon);
  weight.mul_(u.keep).addcdiv_(first, denominator, -u.step_size);
}

void adamw_update(const AdamWUpdate& u, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first,
                  at::Tensor& second) {
  if (!weight.device().is_cpu()) return adamw_update_portable(u, gradient, weight, first, second);
  if (weight.scalar_type() == at::kDouble) return update_on_cpu<double>(u, gradient, weight, first, second);
  update_on_cpu<float>(u, gradient, weight, first, second);
}

}  // namespace carnot
