// nn/number_types.h -- the element types of tensors that carnot/core/kernel supports, as template arguments of its
// functions.
#pragma once

#include <ATen/core/Tensor.h>

#include <type_traits>

#include "carnot/core/base/check.h"
#include "carnot/core/kernel/bfloat16.h"

namespace carnot {

/// The type used to compute with numbers stored as S, as in carnot/core/kernel; gradients of weights have this type.
template <class S>
using Computed = kernel::Computed<S>;

template <class S>
constexpr at::ScalarType scalar_type_of() {
  if constexpr (std::is_same_v<S, float>) {
    return at::kFloat;
  } else if constexpr (std::is_same_v<S, double>) {
    return at::kDouble;
  } else {
    static_assert(std::is_same_v<S, kernel::BFloat16>);
    return at::kBFloat16;
  }
}

/// The tensor's memory. REQUIRES: its elements are of type S.
template <class S>
S* data_of(const at::Tensor& x) {
  if constexpr (std::is_same_v<S, kernel::BFloat16>) {
    return reinterpret_cast<S*>(x.data_ptr<at::BFloat16>());
  } else {
    return x.data_ptr<S>();
  }
}

/// Like x, but of the type used to compute with its elements.
template <class S>
at::TensorOptions computed_like(const at::Tensor& x) {
  return x.options().dtype(scalar_type_of<Computed<S>>()).requires_grad(false);
}

/// The result of body.operator()<S>() for the element type S.
template <class Body>
auto with_number_type(at::ScalarType type, Body body) {
  switch (type) {
    case at::kDouble: return body.template operator()<double>();
    case at::kBFloat16: return body.template operator()<kernel::BFloat16>();
    default: CARNOT_CHECK(type == at::kFloat, "a number type that carnot/core/kernel does not take");
  }
  return body.template operator()<float>();
}

}  // namespace carnot
