#include "carnot/optim/update.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/optim/chunks.h"

namespace carnot {
namespace {

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
