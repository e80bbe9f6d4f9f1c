#include "reference/muon.h"

#include <algorithm>
#include <cmath>

namespace carnot::reference {
namespace {

MuonMatrix zeros(std::size_t rows, std::size_t columns) { return MuonMatrix(rows, std::vector<double>(columns)); }

MuonMatrix product(const MuonMatrix& a, const MuonMatrix& b) {
  MuonMatrix c = zeros(a.size(), b[0].size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b[0].size(); ++j)
      for (std::size_t k = 0; k < b.size(); ++k) c[i][j] += a[i][k] * b[k][j];
  return c;
}

MuonMatrix transposed(const MuonMatrix& a) {
  MuonMatrix t = zeros(a[0].size(), a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[0].size(); ++j) t[j][i] = a[i][j];
  return t;
}

}  // namespace

MuonMatrix orthogonalised(const MuonMatrix& matrix) {
  if (matrix.size() > matrix[0].size()) return transposed(orthogonalised(transposed(matrix)));
  double squares = 0;
  for (const auto& row : matrix)
    for (double x : row) squares += x * x;
  MuonMatrix x = matrix;
  for (auto& row : x)
    for (double& value : row) value /= std::max(std::sqrt(squares), 1e-7);
  for (int step = 0; step < 5; ++step) {
    const MuonMatrix gram = product(x, transposed(x));
    const MuonMatrix cubic = product(gram, x), quintic = product(gram, cubic);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < x[0].size(); ++j)
        x[i][j] = 3.4445 * x[i][j] - 4.775 * cubic[i][j] + 2.0315 * quintic[i][j];
  }
  return x;
}

void muon_step(const MuonSettings& settings, const MuonMatrix& gradient, MuonMatrix& weight, MuonMatrix& mean) {
  const std::size_t rows = weight.size(), columns = weight[0].size();
  MuonMatrix ahead = zeros(rows, columns);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) {
      mean[i][j] = settings.momentum * mean[i][j] + (1 - settings.momentum) * gradient[i][j];
      ahead[i][j] = settings.momentum * mean[i][j] + (1 - settings.momentum) * gradient[i][j];
    }
  const MuonMatrix direction = orthogonalised(ahead);
  const double scale = 0.2 * std::sqrt(static_cast<double>(std::max(rows, columns)));
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j)
      weight[i][j] -= settings.learning_rate * (scale * direction[i][j] + settings.weight_decay * weight[i][j]);
}

}  // namespace carnot::reference
