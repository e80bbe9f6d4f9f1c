#include "carnot/core/optim/rounding.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/core/base/check.h"
#include "carnot/core/optim/chunks.h"
#include "carnot/core/optim/rounding_kernel.h"

namespace carnot {
namespace {

constexpr std::int64_t kDroppedBits = 0xFFFF;  // of a float32 that bfloat16 does not have

at::Tensor shifted_right(const at::Tensor& x, int bits) {
  // LibTorch shifts the sign in.
  return x.bitwise_right_shift(bits).bitwise_and((std::int64_t{1} << (64 - bits)) - 1);
}

/// SplitMix64's finaliser of each number (Steele et al. 2014).
at::Tensor mixed(at::Tensor x) {
  x = x.bitwise_xor(shifted_right(x, 30)).mul(static_cast<std::int64_t>(0xBF58476D1CE4E5B9));
  x = x.bitwise_xor(shifted_right(x, 27)).mul(static_cast<std::int64_t>(0x94D049BB133111EB));
  return x.bitwise_xor(shifted_right(x, 31));
}

}  // namespace

void round_stochastically(const at::Tensor& values, std::uint64_t key, std::int64_t first, const at::Tensor& into) {
  CARNOT_CHECK_EQ(values.numel(), into.numel());
  if (!values.is_cpu() || !values.is_contiguous() || !into.is_contiguous())
    return round_stochastically_portable(values, key, first, into);
  const float* from = values.const_data_ptr<float>();
  auto* to = reinterpret_cast<std::uint16_t*>(into.mutable_data_ptr<at::BFloat16>());
  for_each_chunk(values.numel(), [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    round_stochastically(from + begin, end - begin, key, first + begin, to + begin);
  });
}

void round_stochastically_portable(const at::Tensor& values, std::uint64_t key, std::int64_t first,
                                   const at::Tensor& into) {
  const at::Tensor elements = at::arange(first, first + values.numel(), values.options().dtype(at::kLong));
  const at::Tensor noise =
      mixed(elements.add(1).mul(static_cast<std::int64_t>(0x9E3779B97F4A7C15)).add(static_cast<std::int64_t>(key)))
          .bitwise_and(kDroppedBits)
          .to(at::kInt);
  const at::Tensor bits =
      values.reshape(-1).view(at::kInt).add(noise).bitwise_and(~static_cast<std::int32_t>(kDroppedBits));
  into.view(-1).copy_(bits.view(at::kFloat));
}

at::Tensor join_halves(const at::Tensor& upper, const at::Tensor& lower) {
  CARNOT_CHECK_EQ(upper.numel(), lower.numel());
  if (!upper.is_cpu() || !upper.is_contiguous() || !lower.is_contiguous()) return join_halves_portable(upper, lower);
  at::Tensor values = at::empty(upper.sizes(), upper.options().dtype(at::kFloat));
  const auto* high = reinterpret_cast<const std::uint16_t*>(upper.const_data_ptr<at::BFloat16>());
  const std::int16_t* low = lower.const_data_ptr<std::int16_t>();
  float* to = values.mutable_data_ptr<float>();
  for_each_chunk(values.numel(), [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    join_halves(high + begin, low + begin, end - begin, to + begin);
  });
  return values;
}

at::Tensor join_halves_portable(const at::Tensor& upper, const at::Tensor& lower) {
  return upper.view(at::kShort).to(at::kInt).mul(1 << 16).add(lower.to(at::kInt)).view(at::kFloat);
}

void split_halves(const at::Tensor& values, const at::Tensor& upper, const at::Tensor& lower) {
  CARNOT_CHECK_EQ(values.numel(), upper.numel());
  CARNOT_CHECK_EQ(values.numel(), lower.numel());
  if (!values.is_cpu() || !values.is_contiguous() || !upper.is_contiguous() || !lower.is_contiguous())
    return split_halves_portable(values, upper, lower);
  const float* from = values.const_data_ptr<float>();
  auto* high = reinterpret_cast<std::uint16_t*>(upper.mutable_data_ptr<at::BFloat16>());
  std::int16_t* low = lower.mutable_data_ptr<std::int16_t>();
  for_each_chunk(values.numel(), [=](std::int64_t, std::int64_t begin, std::int64_t end) {
    split_halves(from + begin, end - begin, high + begin, low + begin);
  });
}

void split_halves_portable(const at::Tensor& values, const at::Tensor& upper, const at::Tensor& lower) {
  const at::Tensor bits = values.view(at::kInt);
  upper.view(at::kShort).copy_(bits.add(1 << 15).bitwise_right_shift(16));
  lower.copy_(bits);
}

}  // namespace carnot
