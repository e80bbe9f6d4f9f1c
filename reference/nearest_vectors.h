// reference/nearest_vectors.h -- the nearest vectors by their definition: all inner products, sorted.
#pragma once

#include <utility>
#include <vector>

namespace carnot::reference {

/// (row, inner product) of the `k` rows with the largest inner product, best first, ties by row. Sums in double.
std::vector<std::pair<int, double>> nearest_vectors(const std::vector<std::vector<float>>& rows,
                                                    const std::vector<float>& query, int k);

}  // namespace carnot::reference
