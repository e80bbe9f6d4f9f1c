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
