#include "carnot/core/credit/turn_group_gain.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "carnot/core/credit/rule.h"

namespace carnot {
namespace {

/// Eq. (7) and (8): discounted sum from each gain on, divided by the square root of the number of its terms.
std::vector<double> accumulated(const std::vector<Gain>& gains, const TurnGroupGainOptions& options) {
  std::vector<double> out(gains.size());
  double running = 0;
  for (std::size_t i = gains.size(); i-- > 0;) {
    const int apart = i + 1 < gains.size() ? gains[i + 1].step - gains[i].step : 0;
    running = gains[i].value + std::pow(options.discount, apart) * running;
    out[i] = running / (options.rescale ? std::sqrt(static_cast<double>(gains.size() - i)) : 1);
  }
  return out;
}

void credit_member(const Trajectory& trajectory, Credit& credit, const std::vector<Gain>& gains,
                   const TurnGroupGainOptions& options) {
  const std::vector<double> process = accumulated(gains, options);
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const std::size_t next = next_gain(gains, k);
    if (next == gains.size()) continue;
    const bool own = gains[next].turn == k || options.steps == GainSteps::NonzeroGains;
    const int apart = options.steps == GainSteps::Turns ? gains[next].turn - k : 0;
    const double discounted = std::pow(options.discount, apart) * process[next];
    add_to_turn(credit.advantage, trajectory, k, options.weight * discounted);
    if (!own) continue;
    const double swing = 2 / (1 + std::exp(-gains[next].value)) - 1;
    for (double& scale : sampled_part(credit.clip_scale, trajectory, k)) scale *= 1 + options.clip_swing * swing;
  }
}

}  // namespace

void TurnGroupGainOptions::fields(FieldVisitor& visit) {
  visit.field("weight", weight, "weight of the process credit next to the outcome's", at_least(0));
  visit.field("discount", discount, "discount of later turns' gains, per turn", between(0, 1));
  visit.field("rescale", rescale, "divide sums of gains by the root of the number of their terms");
  visit.field("clip_swing", clip_swing, "how far a turn's clip range follows its gain; 0: not at all", between(0, 1));
  visit.field("divide_by_std", normalisation.divide_by_std, "divide gains by the turn group's standard deviation");
}

void TurnGroupGainOptions::quirk_fields(FieldVisitor& visit) {
  bool forget = steps == GainSteps::NonzeroGains;
  visit.field("forget_zero_gains", forget,
              "a gain of exactly 0 is lost: its turn joins the next, and later turns move up in their groups");
  steps = forget ? GainSteps::NonzeroGains : GainSteps::Turns;
}

CreditRule turn_group_gain(const TurnGroupGainOptions& options) {
  const auto apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
    for (const auto& members : members_by_group(trajectories)) {
      const auto gains = turn_group_gains(trajectories, members, options);
      for (std::size_t m = 0; m < members.size(); ++m) {
        const auto i = static_cast<std::size_t>(members[m]);
        credit_member(trajectories[i], table[i], gains[m], options);
      }
    }
  };
  const auto read = [options](std::span<const Trajectory> trajectories, const CreditTable&, RuleReadings& readings) {
    for (const auto& members : members_by_group(trajectories)) {
      const auto gains = turn_group_gains(trajectories, members, options);
      for (std::size_t m = 0; m < members.size(); ++m)
        for (const Gain& gain : gains[m]) {
          const auto i = static_cast<std::size_t>(members[m]);
          readings.set_turn("information gain", i, gain.turn, *trajectories[i].turn(gain.turn).info_gain);
          readings.set_turn("turn group", i, gain.turn, gain.step);
          readings.set_turn("z in its turn group", i, gain.turn, gain.value);
        }
    }
  };
  return {.name = "turn_group_gain", .apply = apply, .read = read, .info_gain = true};
}

// A turn that several trajectories share counts once.
std::vector<std::vector<Gain>> turn_group_gains(std::span<const Trajectory> trajectories, std::span<const int> members,
                                                const TurnGroupGainOptions& options) {
  std::vector<std::vector<Gain>> gains;
  std::map<int, std::vector<double>> peers;
  std::set<std::pair<int, int>> seen;
  for (const int i : members) {
    const Trajectory& one = trajectories[i];
    gains.push_back(gains_of(one, options.steps));
    for (const Gain& gain : gains.back())
      if (seen.emplace(one.tree_index, one.turns[gain.turn]).second) peers[gain.step].push_back(gain.value);
  }
  std::map<int, Standard> standards;
  for (const auto& [step, values] : peers) standards[step] = standard_of(values, options.normalisation);
  for (auto& of_member : gains)
    for (Gain& gain : of_member) gain.value = standards[gain.step].of(gain.value);
  return gains;
}

}  // namespace carnot
