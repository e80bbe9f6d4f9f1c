#include "carnot/studies/response_simplex.h"

#include <cmath>
#include <utility>

#include "carnot/studies/sparse_decision.h"

namespace carnot {
namespace {

using Values = std::vector<double>;

constexpr double kStep = 1e-5;

Values surprisals(std::span<const double> policy) {
  Values out;
  for (const double p : policy) out.push_back(-std::log(p));
  return out;
}

double expectation(std::span<const double> policy, std::span<const double> values) {
  double sum = 0;
  for (std::size_t a = 0; a < policy.size(); ++a) sum += policy[a] * values[a];
  return sum;
}

double covariance(std::span<const double> policy, std::span<const double> x, std::span<const double> y) {
  double sum = 0;
  for (std::size_t a = 0; a < policy.size(); ++a) sum += policy[a] * x[a] * y[a];
  return sum - expectation(policy, x) * expectation(policy, y);
}

double value_of(std::span<const double> logits, const SimplexObjective& objective) {
  const Values policy = softmax(logits);
  const Values surprisal = surprisals(policy);
  double sum = objective.bonus * expectation(policy, surprisal);
  for (std::size_t a = 0; a < policy.size(); ++a) sum -= objective.weights[a] * surprisal[a];
  if (objective.kl == 0) return sum;
  const Values reference = surprisals(softmax(objective.reference));
  return sum - objective.kl * (expectation(policy, reference) - expectation(policy, surprisal));
}

/// Solves matrix x = right by Gauss-Jordan elimination with pivots.
Values solve(std::vector<Values> matrix, Values right) {
  const std::size_t n = right.size();
  for (std::size_t column = 0; column < n; ++column) {
    std::size_t pivot = column;
    for (std::size_t row = column; row < n; ++row)
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) pivot = row;
    std::swap(matrix[column], matrix[pivot]);
    std::swap(right[column], right[pivot]);
    for (std::size_t row = 0; row < n; ++row) {
      if (row == column) continue;
      const double factor = matrix[row][column] / matrix[column][column];
      for (std::size_t k = column; k < n; ++k) matrix[row][k] -= factor * matrix[column][k];
      right[row] -= factor * right[column];
    }
  }
  for (std::size_t i = 0; i < n; ++i) right[i] /= matrix[i][i];
  return right;
}

/// The Fisher matrix of the logits, diag(pi) - pi pi', is singular along (1, ..., 1), which changes no probability;
/// adding 1 to every entry settles that direction and leaves the others alone.
std::vector<Values> regular_fisher(std::span<const double> policy) {
  std::vector<Values> fisher(policy.size(), Values(policy.size(), 1.0));
  for (std::size_t a = 0; a < policy.size(); ++a) {
    fisher[a][a] += policy[a];
    for (std::size_t b = 0; b < policy.size(); ++b) fisher[a][b] -= policy[a] * policy[b];
  }
  return fisher;
}

Values moved(std::span<const double> from, std::span<const double> direction, double by) {
  Values to(from.begin(), from.end());
  for (std::size_t a = 0; a < to.size(); ++a) to[a] += by * direction[a];
  return to;
}

}  // namespace

double softmax_entropy(std::span<const double> logits) {
  const Values policy = softmax(logits);
  return expectation(policy, surprisals(policy));
}

double entropy_drift(std::span<const double> logits, const SimplexObjective& objective) {
  const Values policy = softmax(logits);
  const Values surprisal = surprisals(policy);
  const double entropy = expectation(policy, surprisal);
  double rate = (objective.bonus + objective.kl) * covariance(policy, surprisal, surprisal);
  for (std::size_t a = 0; a < policy.size(); ++a) rate += objective.weights[a] * (surprisal[a] - entropy);
  if (objective.kl != 0) rate -= objective.kl * covariance(policy, surprisal, surprisals(softmax(objective.reference)));
  return rate;
}

double measured_entropy_drift(std::span<const double> logits, const SimplexObjective& objective) {
  Values gradient;
  for (std::size_t a = 0; a < logits.size(); ++a) {
    Values unit(logits.size(), 0.0);
    unit[a] = 1;
    gradient.push_back(
        (value_of(moved(logits, unit, kStep), objective) - value_of(moved(logits, unit, -kStep), objective)) /
        (2 * kStep));
  }
  Values direction = solve(regular_fisher(softmax(logits)), std::move(gradient));
  double longest = 1;
  for (const double x : direction) longest = std::max(longest, std::abs(x));
  const double step = kStep / longest;
  return (softmax_entropy(moved(logits, direction, step)) - softmax_entropy(moved(logits, direction, -step))) /
         (2 * step);
}

}  // namespace carnot
