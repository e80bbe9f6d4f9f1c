// nn/packed_weights.h -- the cache of PackedWeights: one entry per set of weights, checked by version counters.
#pragma once

#include <ATen/Functions.h>
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "carnot/core/kernel/gemm/bfloat16_gemm.h"
#include "carnot/core/kernel/gemm/gemm.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/number_types.h"

namespace carnot {

/// A packed matrix of numbers stored as S, and its source rows.
template <class S>
struct PackedType {
  using Matrix = kernel::PackedMatrix<S>;
  using Rows = typename Matrix::Rows;
};
template <>
struct PackedType<kernel::BFloat16> {
  using Matrix = kernel::PackedBFloat16;
  using Rows = kernel::BFloat16Rows;
};
template <class S>
using Packed = typename PackedType<S>::Matrix;

/// `count` rows, starting at `data`.
template <class S>
typename PackedType<S>::Rows packed_rows(const S* data, std::int64_t count, std::int64_t row_stride) {
  return {data, count, row_stride};
}

struct PackedWeights::Cache {
  /// The weights [N_i, K] as B of x W^T.
  template <class S>
  const Packed<S>& for_product(std::span<const at::Tensor> weights) {
    auto& entry = entry_of<S>(weights);
    if (entry.versions != versions(weights)) {
      entry.product.pack_transposed(rows<S>(weights), weights[0].size(1));
      entry.versions = versions(weights);
    }
    return entry.product;
  }

  /// The weights, concatenated by rows, as B of dy W; valid until the next call. Packed again for each use: that takes
  /// little of the product's time, and a kept copy would take as much memory as the weights.
  template <class S>
  const Packed<S>& for_gradient(std::span<const at::Tensor> weights) {
    return packed_once<S>(rows<S>(weights), weights[0].size(1));
  }

  /// `matrices`, concatenated by rows, as B; valid until the next call.
  template <class S>
  const Packed<S>& packed_once(std::span<const typename PackedType<S>::Rows> matrices, std::int64_t columns) {
    Packed<S>& packed = std::get<OfType<S>>(types_).once;
    packed.pack(matrices, columns);
    return packed;
  }

  /// Packs the weights for products, and releases the memory of their rows. REQUIRES: nothing shares their storage or
  /// reads their rows again.
  template <class S>
  void keep_product_alone(std::span<const at::Tensor> weights) {
    for_product<S>(weights);
    auto& entries = std::get<OfType<S>>(types_).entries;
    auto entry = entries.extract(weights[0].data_ptr());
    for (const at::Tensor& weight : weights)
      weight.unsafeGetTensorImpl()->set_storage_keep_dtype(at::empty({1}, weight.options()).storage());
    entry.key() = weights[0].data_ptr();
    entries.insert(std::move(entry));
  }

 private:
  template <class S>
  struct Entry {
    Packed<S> product;
    std::vector<std::int64_t> versions;
    at::Tensor first{};  ///< held, so that no other weight can get its address
  };
  template <class S>
  struct OfType {
    std::map<const void*, Entry<S>> entries;
    Packed<S> once;
  };

  template <class S>
  Entry<S>& entry_of(std::span<const at::Tensor> weights) {
    Entry<S>& entry = std::get<OfType<S>>(types_).entries[weights[0].data_ptr()];
    entry.first = weights[0];
    return entry;
  }

  static std::vector<std::int64_t> versions(std::span<const at::Tensor> weights) {
    std::vector<std::int64_t> all;
    for (const at::Tensor& weight : weights) all.push_back(weight._version());
    return all;
  }

  template <class S>
  static std::vector<typename PackedType<S>::Rows> rows(std::span<const at::Tensor> weights) {
    std::vector<typename PackedType<S>::Rows> all;
    for (const at::Tensor& weight : weights)
      all.push_back(packed_rows<S>(data_of<S>(weight), weight.size(0), weight.size(1)));
    return all;
  }

  std::tuple<OfType<float>, OfType<double>, OfType<kernel::BFloat16>> types_;
};

}  // namespace carnot
