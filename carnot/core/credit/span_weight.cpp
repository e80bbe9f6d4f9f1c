#include "carnot/core/credit/span_weight.h"

#include <cmath>

#include "carnot/core/base/statistics.h"

namespace carnot {
namespace {

std::vector<double> signal_of(const Trajectory& trajectory, WeightSignal signal) {
  if (signal == WeightSignal::ReferenceEnergy) return trajectory.column(Column::EnergyReference);
  if (signal == WeightSignal::ReferenceEntropy) return trajectory.column(Column::EntropyReference);
  std::vector<double> values = trajectory.column(Column::LogProbOld);
  if (signal == WeightSignal::Surprisal) {
    for (double& x : values) x = -x;
    return values;
  }
  const std::vector<double> reference = trajectory.column(Column::LogProbReference);
  for (std::size_t t = 0; t < values.size(); ++t) values[t] -= reference[t];
  return values;
}

std::vector<Column> columns_of(WeightSignal signal) {
  switch (signal) {
    case WeightSignal::ReferenceEnergy: return {Column::EnergyReference};
    case WeightSignal::ReferenceEntropy: return {Column::EntropyReference};
    case WeightSignal::Surprisal: return {Column::LogProbOld};
    case WeightSignal::LogProbShift: return {Column::LogProbOld, Column::LogProbReference};
  }
  return {};
}

struct TokenPlace {
  std::size_t trajectory = 0;
  std::size_t token = 0;
};

/// Multiplies think tokens by their weight; returns the positions of the action tokens.
std::vector<TokenPlace> weigh_think_tokens(std::span<const Trajectory> trajectories, CreditTable& table, double think) {
  std::vector<TokenPlace> actions;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    const std::vector<bool> sampled = trajectories[i].sampled();
    const std::vector<SpanKind> kinds = trajectories[i].kinds();
    for (std::size_t t = 0; t < sampled.size(); ++t) {
      if (!sampled[t]) continue;
      if (kinds[t] == SpanKind::Action)
        actions.push_back({.trajectory = i, .token = t});
      else
        table[i].weight[t] *= think;
    }
  }
  return actions;
}

void weigh_actions(std::span<const Trajectory> trajectories, CreditTable& table, std::span<const TokenPlace> actions,
                   const SpanWeightOptions& options) {
  std::vector<double> signals;
  std::vector<double> of_trajectory;
  std::size_t last = trajectories.size();
  for (const TokenPlace& at : actions) {
    if (at.trajectory != last) of_trajectory = signal_of(trajectories[at.trajectory], options.signal);
    last = at.trajectory;
    signals.push_back(of_trajectory[at.token]);
  }
  const std::vector<double> weights = action_weights(signals, options);
  for (std::size_t a = 0; a < actions.size(); ++a) table[actions[a].trajectory].weight[actions[a].token] *= weights[a];
}

}  // namespace

void SpanWeightOptions::fields(FieldVisitor& visit) {
  visit.field("alpha", alpha, "weight of sampled tokens that are not an action", at_least(0));
  visit.field("beta", beta, "action tokens weigh 1 + beta * sigmoid(z of the signal)", at_least(0));
  visit.field("epsilon", epsilon, "added to the variance of the signal", above(0));
  enum_field(visit, "signal", signal, {"reference_energy", "reference_entropy", "surprisal", "log_prob_shift"},
             "what makes an action token weigh more");
}

CreditRule span_weight(const SpanWeightOptions& options) {
  const auto apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
    const std::vector<TokenPlace> actions = weigh_think_tokens(trajectories, table, options.alpha);
    if (options.beta > 0) weigh_actions(trajectories, table, actions, options);
  };
  const auto columns = options.beta > 0 ? columns_of(options.signal) : std::vector<Column>();
  return {.name = "span_weight", .apply = apply, .columns = columns, .kind = RuleKind::Weight};
}

std::vector<double> action_weights(std::span<const double> signals, const SpanWeightOptions& options) {
  const double centre = all_equal(signals) && !signals.empty() ? signals.front() : mean(signals);
  const double deviation = std_population(signals);
  const double scale = std::sqrt(deviation * deviation + options.epsilon);
  std::vector<double> weights;
  for (double x : signals) weights.push_back(1 + options.beta / (1 + std::exp(-(x - centre) / scale)));
  return weights;
}

}  // namespace carnot
