#include "carnot/core/credit/turn_gain.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "carnot/core/base/statistics.h"

namespace carnot {
namespace {

/// One trajectory of a group: its gains and its outcome, raw or normalised.
struct Member {
  std::size_t trajectory = 0;
  std::vector<Gain> gains{};
  double outcome = 0;
};

std::vector<Member> members_of(std::span<const int> numbers, std::span<const Trajectory> trajectories,
                               const CreditTable& table, GainSteps steps) {
  std::vector<Member> members;
  for (int i : numbers) {
    const auto at = static_cast<std::size_t>(i);
    members.push_back(
        {.trajectory = at, .gains = gains_of(trajectories[at], steps), .outcome = table[at].total_reward()});
  }
  return members;
}

std::vector<double> all_gains(std::span<const Member> members) {
  std::vector<double> values;
  for (const Member& member : members)
    for (const Gain& gain : member.gains) values.push_back(gain.value);
  return values;
}

std::vector<double> all_outcomes(std::span<const Member> members) {
  std::vector<double> values;
  for (const Member& member : members) values.push_back(member.outcome);
  return values;
}

void normalise_pools(std::vector<Member>& members, const TurnGainOptions& options) {
  std::vector<double> gains = all_gains(members);
  std::vector<double> outcomes = all_outcomes(members);
  if (options.pool == GainPool::Joint) {
    gains.insert(gains.end(), outcomes.begin(), outcomes.end());
    outcomes = gains;
  }
  const Standard of_gains = standard_of(gains, options.normalisation);
  const Standard of_outcomes = standard_of(outcomes, options.normalisation);
  for (Member& member : members) {
    for (Gain& gain : member.gains) gain.value = of_gains.of(gain.value);
    member.outcome = of_outcomes.of(member.outcome);
  }
}

/// Replaces gains and outcome by the accumulated credit of the turns up to each of them.
void accumulate(Member& member, int last_turn, double discount, GainSteps steps) {
  double running = member.outcome;
  int next_step = steps == GainSteps::Turns ? last_turn : static_cast<int>(member.gains.size());
  for (std::size_t i = member.gains.size(); i-- > 0;) {
    Gain& gain = member.gains[i];
    running = gain.value + std::pow(discount, next_step - gain.step) * running;
    next_step = gain.step;
    gain.value = running;
  }
}

void credit_turns(const Member& member, const Trajectory& trajectory, Credit& credit, const TurnGainOptions& options) {
  const int last = trajectory.num_turns() - 1;
  for (int k = 0; k <= last; ++k) {
    const std::size_t next = next_gain(member.gains, k);
    const bool has_gain = next < member.gains.size();
    const double value = has_gain ? member.gains[next].value : member.outcome;
    const int apart = (has_gain ? member.gains[next].turn : last) - k;
    add_to_turn(credit.advantage, trajectory, k,
                options.steps == GainSteps::Turns ? std::pow(options.discount, apart) * value : value);
  }
}

/// The deviation of the whole batch, at least 1e-6.
double spread(std::span<const double> values) { return std::max(std_population(values), 1e-6); }

/// GainPool::StepSums: replaces gains and outcome by the credit of the turns up to each of them.
void sum_and_normalise(std::vector<Member>& members, double rescale, const TurnGainOptions& options) {
  constexpr double kOutcomeWeight = 1.5;
  std::map<int, std::vector<double>> peers;
  for (Member& member : members) {
    double running = options.discount * member.outcome;
    for (std::size_t i = member.gains.size(); i-- > 0;) {
      running = member.gains[i].value * rescale + options.discount * running;
      member.gains[i].value = running;
      peers[member.gains[i].step].push_back(running);
    }
  }
  std::map<int, Standard> standards;
  for (const auto& [step, values] : peers) standards[step] = standard_of(values, options.normalisation);
  const Standard of_outcomes = standard_of(all_outcomes(members), options.normalisation);
  for (Member& member : members) {
    member.outcome = of_outcomes.of(member.outcome);
    for (Gain& gain : member.gains) gain.value = standards[gain.step].of(gain.value) + kOutcomeWeight * member.outcome;
  }
}

void apply_turn_gain(std::span<const Trajectory> trajectories, CreditTable& table, const TurnGainOptions& options) {
  std::vector<std::vector<Member>> groups;
  std::vector<Member> batch;
  for (const auto& numbers : members_by_group(trajectories)) {
    groups.push_back(members_of(numbers, trajectories, table, options.steps));
    batch.insert(batch.end(), groups.back().begin(), groups.back().end());
  }
  const double rescale = spread(all_outcomes(batch)) / spread(all_gains(batch));
  for (auto& members : groups) {
    if (options.pool == GainPool::StepSums) {
      sum_and_normalise(members, rescale, options);
    } else {
      normalise_pools(members, options);
      for (Member& member : members)
        accumulate(member, trajectories[member.trajectory].num_turns() - 1, options.discount, options.steps);
    }
    for (const Member& member : members)
      credit_turns(member, trajectories[member.trajectory], table[member.trajectory], options);
  }
}

}  // namespace

void TurnGainOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "pool", pool, {"joint", "separate", "step_sums"}, "what gains and outcomes are normalised among");
  visit.field("discount", discount, "discount of later turns, per turn", between(0, 1));
  normalisation.fields(visit);
}

CreditRule turn_gain(const TurnGainOptions& options) {
  return {.name = "turn_gain",
          .apply = [options](std::span<const Trajectory> trajectories,
                             CreditTable& table) { apply_turn_gain(trajectories, table, options); },
          .read = read_gains,
          .info_gain = true};
}

void read_gains(std::span<const Trajectory> trajectories, const CreditTable& table, RuleReadings& readings) {
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    for (const Gain& gain : gains_of(trajectories[i], GainSteps::Turns))
      readings.set_turn("information gain", i, gain.turn, gain.value);
    readings.set_all("reward", i, table[i].total_reward());
  }
}

std::vector<Gain> gains_of(const Trajectory& trajectory, GainSteps steps) {
  std::vector<Gain> gains;
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const auto& gain = trajectory.turn(k).info_gain;
    if (!gain || (steps == GainSteps::NonzeroGains && *gain == 0)) continue;
    gains.push_back(
        {.turn = k, .step = steps == GainSteps::Turns ? k : static_cast<int>(gains.size()), .value = *gain});
  }
  return gains;
}

std::size_t next_gain(const std::vector<Gain>& gains, int k) {
  const auto found = std::find_if(gains.begin(), gains.end(), [&](const Gain& gain) { return gain.turn >= k; });
  return static_cast<std::size_t>(found - gains.begin());
}

}  // namespace carnot
