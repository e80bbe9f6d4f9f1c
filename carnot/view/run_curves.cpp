#include "carnot/view/run_curves.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>

#include "carnot/core/base/file.h"
#include "carnot/core/base/statistics.h"
#include "carnot/view/lists.h"

namespace carnot {
namespace {

/// A curve, by the metric that it draws.
struct CurveRow {
  std::string_view name, unit, begins, ends;
};

constexpr std::array kCurves = {
    CurveRow{"evaluation", "success", "val-core/", "/success/mean@"},
    CurveRow{"success", "of training tasks", "env/", "/success"},
    CurveRow{"score", "mean", "critic/score/mean", ""},
    CurveRow{"no signal", "share of groups", "frac_reward_zero_std", ""},
    CurveRow{"entropy", "nats", "actor/entropy", ""},
    CurveRow{"gradient", "norm", "actor/grad_norm", ""},
    CurveRow{"clipped", "share of tokens", "actor/pg_clipfrac", ""},
    CurveRow{"KL", "nats, to the reference", "actor/kl_loss", ""},
    CurveRow{"length", "tokens", "response_length/mean", ""},
    CurveRow{"rollout", "seconds", "timing_s/rollout", ""},
    CurveRow{"measuring", "seconds", "timing_s/score", ""},
    CurveRow{"update", "seconds", "timing_s/update_actor", ""},
};

/// Whether the metric is the curve's; the rest of its name after `ends`, a number of samples, does not matter.
bool draws(const CurveRow& curve, std::string_view metric) {
  if (curve.ends.empty()) return metric == curve.begins;
  if (!metric.starts_with(curve.begins)) return false;
  const auto at = metric.find(curve.ends);
  if (at == std::string_view::npos) return false;
  const std::string_view rest = metric.substr(at + curve.ends.size());
  return rest.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Tasks of the evaluation that a metric "val-core/NAME/success/mean@N" is of; 0 if the row does not say.
double tasks_of(const Json& row, std::string_view metric) {
  const auto slash = metric.find('/'), at = metric.rfind('@');
  if (!metric.starts_with("val-core/") || at == std::string_view::npos) return 0;
  int samples = 0;
  std::from_chars(metric.data() + at + 1, metric.data() + metric.size(), samples);
  const std::string_view name = metric.substr(slash + 1, metric.find("/success/") - slash - 1);
  const auto count = row.find("val-aux/" + std::string(name) + "/trajectories");
  return samples > 0 && count != row.end() && count->is_number() ? count->get<double>() / samples : 0;
}

OrderedJson point_of(const Json& row, std::string_view metric, double value) {
  OrderedJson point{row.at("step").get<std::int64_t>(), rounded(value)};
  if (const double tasks = tasks_of(row, metric); tasks >= 1) {
    const Interval interval = wilson_interval(value * tasks, tasks);
    point.push_back(rounded(interval.low));
    point.push_back(rounded(interval.high));
  }
  return point;
}

}  // namespace

OrderedJson run_curves(std::string_view metrics) {
  std::array<OrderedJson, kCurves.size()> points;
  for (const std::string_view line : split_lines(metrics)) {
    const auto row = parse_json_object(line, "");
    if (!row || !row->contains("step") || !row->at("step").is_number_integer()) continue;
    for (const auto& [metric, value] : row->items())
      for (std::size_t c = 0; c < kCurves.size(); ++c)
        if (value.is_number() && draws(kCurves[c], metric))
          points[c].push_back(point_of(*row, metric, value.template get<double>()));
  }
  OrderedJson curves = OrderedJson::array();
  for (std::size_t c = 0; c < kCurves.size(); ++c)
    if (!points[c].empty())
      curves.push_back({{"name", kCurves[c].name}, {"unit", kCurves[c].unit}, {"points", points[c]}});
  return curves;
}

}  // namespace carnot
