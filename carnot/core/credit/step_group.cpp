#include "carnot/core/credit/step_group.h"

#include <map>

#include "carnot/core/credit/members.h"
#include "carnot/core/credit/similarity.h"

namespace carnot {
namespace {

struct Step {
  int trajectory = 0;
  int turn = 0;
  double value = 0;
};

std::vector<Step> steps_of(std::span<const Trajectory> trajectories, std::span<const int> members, double discount) {
  std::vector<Step> steps;
  for (int member : members) {
    const Trajectory& one = trajectories[member];
    std::vector<double> rewards;
    for (int k = 0; k < one.num_turns(); ++k) rewards.push_back(one.turn(k).reward);
    const std::vector<double> returns = turn_returns(rewards, discount);
    for (int k = 0; k < one.num_turns(); ++k)
      if (one.turn(k).num_sampled() > 0)
        steps.push_back({.trajectory = member, .turn = k, .value = returns[k] + one.turn(k).penalty});
  }
  return steps;
}

void credit_steps(std::span<const Trajectory> trajectories, CreditTable& table, std::span<const Step> steps,
                  const StepGroupOptions& options) {
  std::vector<std::string> anchors;
  for (const Step& step : steps) anchors.push_back(trajectories[step.trajectory].turn(step.turn).anchor);
  const std::vector<int> group = group_anchors(anchors, options.similarity);

  std::map<int, std::vector<double>> values;
  for (std::size_t s = 0; s < steps.size(); ++s) values[group[s]].push_back(steps[s].value);
  std::map<int, Standard> standards;
  for (const auto& [first, of_group] : values) standards[first] = standard_of(of_group, options.normalisation);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const auto member = static_cast<std::size_t>(steps[s].trajectory);
    const double advantage = options.weight * standards[group[s]].of(steps[s].value);
    add_to_turn(table[member].advantage, trajectories[member], steps[s].turn, advantage);
  }
}

}  // namespace

void StepGroupOptions::fields(FieldVisitor& visit) {
  visit.field("weight", weight, "weight of the step advantage next to the base's", at_least(0));
  visit.field("discount", discount, "discount of rewards inside a trajectory, per turn", between(0, 1));
  visit.field("divide_by_std", normalisation.divide_by_std, "divide by the step group's standard deviation");
  visit.field("similarity", similarity,
              "turns whose states are at least this alike share a group; 1: equal states only", between(0, 1));
}

CreditRule step_group(const StepGroupOptions& options) {
  const auto apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
    if (options.weight == 0) return;
    for (const auto& members : members_by_group(trajectories))
      credit_steps(trajectories, table, steps_of(trajectories, members, options.discount), options);
  };
  return {.name = "step_group", .apply = apply};
}

std::vector<int> group_anchors(std::span<const std::string> anchors, double similarity) {
  std::vector<int> group;
  std::vector<int> firsts;
  std::map<std::string, int> known;
  for (std::size_t s = 0; s < anchors.size(); ++s) {
    const int self = static_cast<int>(s);
    int found = self;
    if (!anchors[s].empty() && similarity >= 1) {
      found = known.try_emplace(anchors[s], self).first->second;
    } else if (!anchors[s].empty()) {
      for (int first : firsts) {
        if (carnot::similarity(anchors[s], anchors[first]) < similarity) continue;
        found = first;
        break;
      }
      if (found == self) firsts.push_back(self);
    }
    group.push_back(found);
  }
  return group;
}

std::vector<double> turn_returns(std::span<const double> rewards, double discount) {
  std::vector<double> returns(rewards.size());
  double running = 0;
  for (std::size_t k = rewards.size(); k-- > 0;) returns[k] = running = rewards[k] + discount * running;
  return returns;
}

}  // namespace carnot
