#include "carnot/optim/update.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "carnot/optim/chunks.h"

namespace carnot {
namespace {

/// One pass over memory: moments, decay and step. Number is the dtype of master and moments.
template <class Number>
void update_on_cpu(const AdamWUpdate& u, std::int64_t elements, const Number* gradient, Number* weight, Number* first,
                   Number* second) {
  const auto scale = static_cast<Number>(u.gradient_scale), keep = static_cast<Number>(u.keep);
  const auto beta1 = static_cast<Number>(u.beta1), beta2 = static_cast<Number>(u.beta2);
  const auto rest1 = static_cast<Number>(1 - u.beta1), rest2 = static_cast<Number>(1 - u.beta2);
  const auto size = static_cast<Number>(u.step_size), root = static_cast<Number>(u.inverse_root);
  const auto epsilon = static_cast<Number>(u.epsilon);
  for_each_chunk(elements, [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Number g = gradient[i] * scale;
      first[i] = beta1 * first[i] + rest1 * g;
      second[i] = beta2 * second[i] + rest2 * g * g;
      weight[i] = keep * weight[i] - size * first[i] / (std::sqrt(second[i]) * root + epsilon);
    }
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

void adamw_update(const AdamWUpdate& u, const at::Tensor& gradient, at::Tensor& weight, at::Tensor& first, at::Tensor& second) {
  if (!weight.device().is_cpu()) {
    adamw_update_portable(u, gradient, weight, first, second);
  } else if (weight.scalar_type() == at::kDouble) {
    update_on_cpu<double>(u, weight.numel(), gradient.const_data_ptr<double>(), weight.mutable_data_ptr<double>(),
                          first.mutable_data_ptr<double>(), second.mutable_data_ptr<double>());
  } else {
    update_on_cpu<float>(u, weight.numel(), gradient.const_data_ptr<float>(), weight.mutable_data_ptr<float>(),
                         first.mutable_data_ptr<float>(), second.mutable_data_ptr<float>());
  }
}

}  // namespace carnot
