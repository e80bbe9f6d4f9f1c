// nn/packed_weights.h -- the cache of PackedWeights: one entry per set of weights, checked by version counters.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "carnot/kernel/gemm/gemm.h"
#include "carnot/nn/linear.h"

namespace carnot {

struct PackedWeights::Cache {
  /// The weights [N_i, K] as B of x W^T.
  template <class T>
  const kernel::PackedMatrix<T>& for_product(std::span<const at::Tensor> weights) {
    auto& entry = entry_of<T>(weights);
    if (entry.product_versions != versions(weights)) {
      entry.product.pack_transposed(rows<T>(weights), weights[0].size(1));
      entry.product_versions = versions(weights);
    }
    return entry.product;
  }

  /// The weights one below the other, as B of dy W.
  template <class T>
  const kernel::PackedMatrix<T>& for_gradient(std::span<const at::Tensor> weights) {
    auto& entry = entry_of<T>(weights);
    if (entry.gradient_versions != versions(weights)) {
      entry.gradient.pack(rows<T>(weights), weights[0].size(1));
      entry.gradient_versions = versions(weights);
    }
    return entry.gradient;
  }

  /// Memory for a matrix that is packed, used once and forgotten.
  template <class T>
  kernel::PackedMatrix<T>& scratch() {
    if constexpr (sizeof(T) == 4) {
      return float_scratch_;
    } else {
      return double_scratch_;
    }
  }

 private:
  template <class T>
  struct Entry {
    kernel::PackedMatrix<T> product, gradient;
    std::vector<std::int64_t> product_versions, gradient_versions;
    at::Tensor first{};  ///< held, so that no other weight can come to lie at its address
  };

  template <class T>
  Entry<T>& entry_of(std::span<const at::Tensor> weights) {
    Entry<T>& entry = entries<T>()[weights[0].data_ptr()];
    entry.first = weights[0];
    return entry;
  }

  template <class T>
  std::map<const void*, Entry<T>>& entries() {
    if constexpr (sizeof(T) == 4) {
      return floats_;
    } else {
      return doubles_;
    }
  }

  static std::vector<std::int64_t> versions(std::span<const at::Tensor> weights) {
    std::vector<std::int64_t> all;
    for (const at::Tensor& weight : weights) all.push_back(weight._version());
    return all;
  }

  template <class T>
  static std::vector<typename kernel::PackedMatrix<T>::Rows> rows(std::span<const at::Tensor> weights) {
    std::vector<typename kernel::PackedMatrix<T>::Rows> all;
    for (const at::Tensor& weight : weights)
      all.push_back({.data = weight.data_ptr<T>(), .count = weight.size(0), .row_stride = weight.size(1)});
    return all;
  }

  std::map<const void*, Entry<float>> floats_;
  std::map<const void*, Entry<double>> doubles_;
  kernel::PackedMatrix<float> float_scratch_;
  kernel::PackedMatrix<double> double_scratch_;
};

}  // namespace carnot
