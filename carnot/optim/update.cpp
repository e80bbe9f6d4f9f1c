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

void copy_rounded(const at::Tensor& values, const at::Tensor& into) {
  const bool own = into.device().is_cpu() && into.scalar_type() == at::kBFloat16 &&
                   values.scalar_type() == at::kFloat && values.is_contiguous() && into.is_contiguous();
  if (!own) {
    into.copy_(values);
    return;
  }
  const float* from = values.const_data_ptr<float>();
  at::BFloat16* to = into.mutable_data_ptr<at::BFloat16>();
  for_each_chunk(values.numel(), [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = from[i];
  });
  into.unsafeGetTensorImpl()->bump_version();  // as copy_ does
}

}  // namespace carnot
