#include "carnot/optim/norm.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "carnot/optim/chunks.h"

namespace carnot {
namespace {

double sum_of_squares_on_cpu(const at::Tensor& gradient) {
  const at::Tensor contiguous = gradient.contiguous();
  std::vector<double> of_chunk(num_chunks(contiguous.numel()), 0.0);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, contiguous.scalar_type(), "sum_of_squares", [&] {
    const scalar_t* values = contiguous.const_data_ptr<scalar_t>();
    for_each_chunk(contiguous.numel(), [&](std::int64_t chunk, std::int64_t begin, std::int64_t end) {
      double sum = 0;
      for (std::int64_t i = begin; i < end; ++i) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      of_chunk[chunk] = sum;
    });
  });
  double sum = 0;
  for (double part : of_chunk) sum += part;
  return sum;
}

double sum_of_squares(const at::Tensor& gradient) {
  if (gradient.device().is_cpu()) return sum_of_squares_on_cpu(gradient);
  return gradient.to(at::kDouble).square().sum().item<double>();
}

}  // namespace

double global_norm(const std::vector<at::Tensor>& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) sum += sum_of_squares(gradient);
  return std::sqrt(sum);
}

}  // namespace carnot
