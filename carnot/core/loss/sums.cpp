#include "carnot/core/loss/sums.h"

#include <ATen/Functions.h>

#include <span>
#include <vector>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

template <class Number>
std::span<const Number> numbers(const at::Tensor& contiguous) {
  return {contiguous.const_data_ptr<Number>(), static_cast<std::size_t>(contiguous.numel())};
}

}  // namespace

double ordered_sum(const at::Tensor& values_T) {
  const at::Tensor values = values_T.detach().contiguous();
  double sum = 0;
  for (double value : numbers<double>(values)) sum += value;
  return sum;
}

at::Tensor segment_mean(const at::Tensor& values_T, const at::Tensor& segment_T, std::int64_t num_segments) {
  CARNOT_CHECK_EQ(values_T.numel(), segment_T.numel());
  const at::Tensor values_of_tokens = values_T.detach().contiguous(), segments_of_tokens = segment_T.contiguous();
  const auto values = numbers<double>(values_of_tokens);
  const auto segments = numbers<std::int64_t>(segments_of_tokens);
  std::vector<double> sum(num_segments, 0.0), count(sum);
  for (std::size_t t = 0; t < values.size(); ++t) {
    CARNOT_CHECK_GE(segments[t], 0);
    CARNOT_CHECK_LT(segments[t], num_segments);
    const auto s = static_cast<std::size_t>(segments[t]);
    sum[s] += values[t];
    count[s] += 1;
  }
  at::Tensor means_T = at::empty_like(values_of_tokens);
  double* mean = means_T.mutable_data_ptr<double>();
  for (std::size_t t = 0; t < values.size(); ++t) {
    const auto s = static_cast<std::size_t>(segments[t]);
    mean[t] = sum[s] / count[s];
  }
  return means_T;
}

}  // namespace carnot
