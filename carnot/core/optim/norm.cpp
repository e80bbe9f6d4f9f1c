#include "carnot/core/optim/norm.h"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/optim/chunks.h"

namespace carnot {
namespace {

double sum_in_order(std::span<const double> parts) {
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

double sum_of_squares(const at::Tensor& gradient) {
  if (gradient.device().is_cpu()) return sum_in_order(chunk_sums_of_squares(gradient));
  return gradient.to(at::kDouble).square().sum().item<double>();
}

}  // namespace

std::vector<double> chunk_sums_of_squares(const at::Tensor& gradient) {
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
  return of_chunk;
}

double global_norm(const std::vector<at::Tensor>& gradients) {
  double sum = 0;
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) sum += sum_of_squares(gradient);
  return std::sqrt(sum);
}

double norm_of_chunk_sums(std::span<const double> sums, std::span<const std::int64_t> sizes) {
  double sum = 0;
  std::size_t next = 0;
  for (const std::int64_t size : sizes) {
    const auto chunks = static_cast<std::size_t>(num_chunks(size));
    CARNOT_CHECK_LE(next + chunks, sums.size());
    sum += sum_in_order(sums.subspan(next, chunks));
    next += chunks;
  }
  CARNOT_CHECK_EQ(next, sums.size());
  return std::sqrt(sum);
}

}  // namespace carnot
