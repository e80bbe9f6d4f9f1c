#include "carnot/studies/oracle_values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "carnot/studies/correlation.h"

namespace carnot {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

double mean_or_unknown(std::span<const double> values) { return values.empty() ? kNoValue : mean(values); }

double value_in(const StateValue& value, OracleHalf half) {
  if (half == OracleHalf::Both) return value.mean;
  return half == OracleHalf::First ? value.first_half : value.second_half;
}

Interval interval_of(std::span<const double> scores, const std::optional<ScoreLevels>& levels) {
  if (!levels || levels->low == levels->high) return mean_interval(scores);
  const double width = levels->high - levels->low;
  const auto n = static_cast<double>(scores.size());
  const Interval share = wilson_interval(n * (mean(scores) - levels->low) / width, n);
  return {.low = levels->low + width * share.low, .high = levels->low + width * share.high};
}

}  // namespace

StateValue value_of(std::span<const std::optional<double>> scores, const std::optional<ScoreLevels>& levels) {
  std::vector<double> all, first, second;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!scores[i]) continue;
    all.push_back(*scores[i]);
    (2 * i < scores.size() ? first : second).push_back(*scores[i]);
  }
  StateValue value{.count = static_cast<int>(all.size()),
                   .mean = mean_or_unknown(all),
                   .first_half = mean_or_unknown(first),
                   .second_half = mean_or_unknown(second),
                   .interval = {.low = kNoValue, .high = kNoValue},
                   .standard_error = kNoValue};
  if (all.empty()) return value;
  value.interval = interval_of(all, levels);
  value.standard_error = std_sample(all) / std::sqrt(static_cast<double>(all.size()));
  return value;
}

std::optional<ScoreLevels> score_levels(std::span<const std::vector<std::optional<double>>> scores) {
  std::set<double> found;
  for (const auto& state : scores)
    for (const std::optional<double>& score : state)
      if (score) found.insert(*score);
  if (found.empty() || found.size() > 2) return std::nullopt;
  return ScoreLevels{.low = *found.begin(), .high = *found.rbegin()};
}

OracleAdvantage advantage_of(const OracleTurn& turn, std::span<const StateValue> values, OracleHalf half) {
  const double before = value_in(values[turn.before], half);
  const double after = turn.after < 0 ? turn.score : value_in(values[turn.after], half);
  const double inside = turn.inside < 0 ? kNoValue : value_in(values[turn.inside], half);
  return {.turn = after - before, .thought = inside - before, .action = after - inside};
}

Reliability reliability_of(std::span<const double> first, std::span<const double> second) {
  Reliability out{.count = static_cast<int>(first.size())};
  if (first.size() < 2) return out;
  const double a = mean(first), b = mean(second);
  double covariance = 0;
  for (std::size_t i = 0; i < first.size(); ++i) covariance += (first[i] - a) * (second[i] - b);
  out.signal_deviation = std::sqrt(std::max(0.0, covariance / static_cast<double>(first.size())));
  if (const auto r = pearson(first, second)) out.value = 2 * *r / (1 + *r);
  return out;
}

std::optional<double> disattenuated(const std::optional<double>& correlation, const Reliability& reliability) {
  if (!correlation || !reliability.value || !(*reliability.value > 0)) return std::nullopt;
  return std::clamp(*correlation / std::sqrt(*reliability.value), -1.0, 1.0);
}

}  // namespace carnot
