#include "carnot/core/credit/span_weight.h"

#include <cmath>

#include "carnot/core/base/statistics.h"
#include "carnot/core/credit/normalise.h"

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

/// The positions of the action tokens, and of the other sampled ones.
struct TokenPlaces {
  std::vector<TokenPlace> actions{}, others{};
};

TokenPlaces places_of(std::span<const Trajectory> trajectories) {
  TokenPlaces places;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    const std::vector<bool> sampled = trajectories[i].sampled();
    const std::vector<SpanKind> kinds = trajectories[i].kinds();
    for (std::size_t t = 0; t < sampled.size(); ++t) {
      if (sampled[t])
        (kinds[t] == SpanKind::Action ? places.actions : places.others).push_back({.trajectory = i, .token = t});
    }
  }
  return places;
}

std::vector<double> signals_at(std::span<const Trajectory> trajectories, std::span<const TokenPlace> actions,
                               WeightSignal signal) {
  std::vector<double> signals;
  std::vector<double> of_trajectory;
  std::size_t last = trajectories.size();
  for (const TokenPlace& at : actions) {
    if (at.trajectory != last) of_trajectory = signal_of(trajectories[at.trajectory], signal);
    last = at.trajectory;
    signals.push_back(of_trajectory[at.token]);
  }
  return signals;
}

Standard standard_of_signals(std::span<const double> signals, double epsilon) {
  const double centre = all_equal(signals) && !signals.empty() ? signals.front() : mean(signals);
  const double deviation = std_population(signals);
  return {.centre = centre, .divisor = std::sqrt(deviation * deviation + epsilon)};
}

void weigh(std::span<const Trajectory> trajectories, CreditTable& table, const SpanWeightOptions& options) {
  const TokenPlaces places = places_of(trajectories);
  for (const TokenPlace& at : places.others) table[at.trajectory].weight[at.token] *= options.alpha;
  if (options.beta == 0) return;
  const std::vector<double> weights = action_weights(signals_at(trajectories, places.actions, options.signal), options);
  for (std::size_t a = 0; a < weights.size(); ++a)
    table[places.actions[a].trajectory].weight[places.actions[a].token] *= weights[a];
}

std::string_view words_for(WeightSignal signal) {
  switch (signal) {
    case WeightSignal::ReferenceEnergy: return "energy of the reference";
    case WeightSignal::ReferenceEntropy: return "entropy of the reference";
    case WeightSignal::Surprisal: return "surprisal";
    case WeightSignal::LogProbShift: return "shift of the log-probability";
  }
  return "";
}

void read_signals(std::span<const Trajectory> trajectories, const SpanWeightOptions& options, RuleReadings& readings) {
  if (options.beta == 0) return;
  const std::vector<TokenPlace> actions = places_of(trajectories).actions;
  const std::vector<double> signals = signals_at(trajectories, actions, options.signal);
  const Standard standard = standard_of_signals(signals, options.epsilon);
  for (std::size_t a = 0; a < actions.size(); ++a) {
    readings.set_token(words_for(options.signal), actions[a].trajectory, actions[a].token, signals[a]);
    readings.set_token("z among actions", actions[a].trajectory, actions[a].token, standard.of(signals[a]));
  }
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
    weigh(trajectories, table, options);
  };
  const auto read = [options](std::span<const Trajectory> trajectories, const CreditTable&, RuleReadings& readings) {
    read_signals(trajectories, options, readings);
  };
  const auto columns = options.beta > 0 ? columns_of(options.signal) : std::vector<Column>();
  return {.name = "span_weight", .apply = apply, .read = read, .columns = columns, .kind = RuleKind::Weight};
}

std::vector<double> action_weights(std::span<const double> signals, const SpanWeightOptions& options) {
  const Standard standard = standard_of_signals(signals, options.epsilon);
  std::vector<double> weights;
  for (double x : signals) weights.push_back(1 + options.beta / (1 + std::exp(-standard.of(x))));
  return weights;
}

}  // namespace carnot
