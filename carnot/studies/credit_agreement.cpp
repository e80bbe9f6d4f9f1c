#include "carnot/studies/credit_agreement.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "carnot/core/base/random.h"
#include "carnot/studies/correlation.h"
#include "carnot/studies/distribution.h"

namespace carnot {
namespace {

constexpr int kResamples = 1000;

/// Sums over pairs, from which their correlation follows.
struct Moments {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double a, double b) { add({.n = 1, .x = a, .y = b, .xx = a * a, .yy = b * b, .xy = a * b}); }
  void add(const Moments& more) {
    n += more.n;
    x += more.x;
    y += more.y;
    xx += more.xx;
    yy += more.yy;
    xy += more.xy;
  }
  /// None if a side is constant.
  std::optional<double> pearson() const {
    const double a = xx - x * x / n, b = yy - y * y / n, tiny = 1e-12;
    if (!(a > tiny * xx) || !(b > tiny * yy)) return std::nullopt;
    return (xy - x * y / n) / std::sqrt(a * b);
  }
};

std::optional<Interval> bootstrapped(const ComparedCredit& pairs, std::uint64_t seed) {
  std::map<int, Moments> by_task;
  for (std::size_t i = 0; i < pairs.credit.size(); ++i) by_task[pairs.task[i]].add(pairs.credit[i], pairs.advantage[i]);
  std::vector<Moments> tasks;
  for (const auto& [task, moments] : by_task) tasks.push_back(moments);
  if (tasks.size() < 3) return std::nullopt;
  RandomStream random(seed);
  std::vector<double> found;
  for (int r = 0; r < kResamples; ++r) {
    Moments sum;
    for (std::size_t i = 0; i < tasks.size(); ++i) sum.add(random.pick(tasks));
    if (const auto pearson = sum.pearson()) found.push_back(*pearson);
  }
  if (found.size() < kResamples / 2) return std::nullopt;
  return Interval{.low = quantile(found, 0.025), .high = quantile(found, 0.975)};
}

}  // namespace

CreditAgreement agreement_of(const ComparedCredit& pairs, const Reliability& reliability, std::uint64_t seed) {
  CreditAgreement out{.pairs = std::ssize(pairs.credit),
                      .pearson = pearson(pairs.credit, pairs.advantage),
                      .spearman = spearman(pairs.credit, pairs.advantage)};
  out.corrected = disattenuated(out.pearson, reliability);
  if (out.pearson) out.interval = bootstrapped(pairs, seed);
  for (std::size_t i = 0; i < pairs.credit.size(); ++i) {
    if (!(std::abs(pairs.advantage[i]) > 2 * pairs.error[i])) continue;
    ++out.clear;
    out.right += pairs.credit[i] * pairs.advantage[i] > 0 ? 1 : 0;
  }
  return out;
}

}  // namespace carnot
