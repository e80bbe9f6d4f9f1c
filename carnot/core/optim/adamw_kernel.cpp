#include "carnot/core/optim/adamw_kernel.h"

#include <cmath>

namespace carnot {
namespace {

template <class Number>
void run(const AdamWUpdate& u, std::int64_t elements, const Number* __restrict gradient, Number* __restrict weight,
         Number* __restrict first, Number* __restrict second) {
  const auto scale = static_cast<Number>(u.gradient_scale), keep = static_cast<Number>(u.keep);
  const auto beta1 = static_cast<Number>(u.beta1), beta2 = static_cast<Number>(u.beta2);
  const auto rest1 = static_cast<Number>(1 - u.beta1), rest2 = static_cast<Number>(1 - u.beta2);
  const auto size = static_cast<Number>(u.step_size), root = static_cast<Number>(u.inverse_root);
  const auto epsilon = static_cast<Number>(u.epsilon);
  for (std::int64_t i = 0; i < elements; ++i) {
    const Number g = gradient[i] * scale;
    first[i] = beta1 * first[i] + rest1 * g;
    second[i] = beta2 * second[i] + rest2 * g * g;
    weight[i] = keep * weight[i] - size * first[i] / (std::sqrt(second[i]) * root + epsilon);
  }
}

}  // namespace

void adamw_kernel(const AdamWUpdate& update, std::int64_t elements, const float* gradient, float* weight, float* first,
                  float* second) {
  run(update, elements, gradient, weight, first, second);
}

void adamw_kernel(const AdamWUpdate& update, std::int64_t elements, const double* gradient, double* weight,
                  double* first, double* second) {
  run(update, elements, gradient, weight, first, second);
}

}  // namespace carnot
