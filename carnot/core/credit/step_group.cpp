#include "carnot/core/credit/step_group.h"

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "carnot/core/base/utf8.h"

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

/// Visits each turn with what its step group compares it with, and the number of turns there.
void compare_steps(std::span<const Trajectory> trajectories, std::span<const Step> steps,
                   const StepGroupOptions& options,
                   const std::function<void(const Step&, const Standard&, std::size_t size)>& visit) {
  std::vector<std::string> anchors;
  for (const Step& step : steps) anchors.push_back(trajectories[step.trajectory].turn(step.turn).anchor);
  const std::vector<int> group = group_anchors(anchors, options.similarity);

  std::map<int, std::vector<double>> values;
  for (std::size_t s = 0; s < steps.size(); ++s) values[group[s]].push_back(steps[s].value);
  std::map<int, Standard> standards;
  for (const auto& [first, of_group] : values) standards[first] = standard_of(of_group, options.normalisation);
  for (std::size_t s = 0; s < steps.size(); ++s) visit(steps[s], standards[group[s]], values[group[s]].size());
}

/// Bytes that do not start a code point are joined to the previous one; the string need not be valid UTF-8.
std::u32string code_points(std::string_view text) {
  std::u32string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (continues_character(c) && !out.empty())
      out.back() = (out.back() << 6) | (byte & 0x3Fu);
    else
      out.push_back(byte);
  }
  return out;
}

struct Block {
  std::size_t a = 0;
  std::size_t b = 0;
  std::size_t size = 0;
};

class Matcher {
 public:
  Matcher(std::u32string a, std::u32string b) : a_(std::move(a)), b_(std::move(b)) {
    for (std::size_t j = 0; j < b_.size(); ++j) places_[b_[j]].push_back(j);
    if (b_.size() < kManyElements) return;
    std::erase_if(places_, [&](const auto& entry) { return entry.second.size() > b_.size() / 100 + 1; });
  }

  std::size_t matching() const { return matching(0, a_.size(), 0, b_.size()); }

 private:
  static constexpr std::size_t kManyElements = 200;

  std::size_t matching(std::size_t a_low, std::size_t a_high, std::size_t b_low, std::size_t b_high) const {
    const Block block = longest(a_low, a_high, b_low, b_high);
    if (block.size == 0) return 0;
    return block.size + matching(a_low, block.a, b_low, block.b) +
           matching(block.a + block.size, a_high, block.b + block.size, b_high);
  }

  /// The longest common block, the first in `a`, then in `b`; extended at both ends over popular characters.
  Block longest(std::size_t a_low, std::size_t a_high, std::size_t b_low, std::size_t b_high) const {
    Block best{.a = a_low, .b = b_low};
    std::unordered_map<std::size_t, std::size_t> length_at;
    for (std::size_t i = a_low; i < a_high; ++i) {
      std::unordered_map<std::size_t, std::size_t> next;
      const auto places = places_.find(a_[i]);
      if (places != places_.end()) {
        for (std::size_t j : places->second) {
          if (j < b_low || j >= b_high) continue;
          const auto before = j > 0 ? length_at.find(j - 1) : length_at.end();
          const std::size_t length = 1 + (before == length_at.end() ? 0 : before->second);
          next[j] = length;
          if (length > best.size) best = {.a = i + 1 - length, .b = j + 1 - length, .size = length};
        }
      }
      length_at = std::move(next);
    }
    while (best.a > a_low && best.b > b_low && a_[best.a - 1] == b_[best.b - 1])
      best = {.a = best.a - 1, .b = best.b - 1, .size = best.size + 1};
    while (best.a + best.size < a_high && best.b + best.size < b_high &&
           a_[best.a + best.size] == b_[best.b + best.size])
      ++best.size;
    return best;
  }

  std::u32string a_;
  std::u32string b_;
  std::unordered_map<char32_t, std::vector<std::size_t>> places_{};
};

}  // namespace

void StepGroupOptions::fields(FieldVisitor& visit) {
  visit.field("weight", weight, "weight of the step advantage next to the base's", at_least(0));
  visit.field("discount", discount, "discount of rewards inside a trajectory, per turn", between(0, 1));
  visit.field("divide_by_std", normalisation.divide_by_std, "divide by the step group's standard deviation");
  visit.field("similarity", similarity,
              "turns whose states are at least this similar share a group; 1: equal states only", between(0, 1));
}

CreditRule step_group(const StepGroupOptions& options) {
  const auto apply = [options](std::span<const Trajectory> trajectories, CreditTable& table) {
    if (options.weight == 0) return;
    for (const auto& members : members_by_group(trajectories))
      compare_steps(trajectories, steps_of(trajectories, members, options.discount), options,
                    [&](const Step& step, const Standard& standard, std::size_t) {
                      add_to_turn(table[step.trajectory].advantage, trajectories[step.trajectory], step.turn,
                                  options.weight * standard.of(step.value));
                    });
  };
  const auto read = [options](std::span<const Trajectory> trajectories, const CreditTable&, RuleReadings& readings) {
    for (const auto& members : members_by_group(trajectories))
      compare_steps(trajectories, steps_of(trajectories, members, options.discount), options,
                    [&](const Step& step, const Standard& standard, std::size_t size) {
                      readings.set_turn("return of the turn", step.trajectory, step.turn, step.value);
                      readings.set_turn("mean of its step group", step.trajectory, step.turn, standard.centre);
                      readings.set_turn("divisor", step.trajectory, step.turn, standard.divisor);
                      readings.set_turn("turns in its step group", step.trajectory, step.turn,
                                        static_cast<double>(size));
                    });
  };
  return {.name = "step_group", .apply = apply, .read = read};
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

double similarity(std::string_view a, std::string_view b) {
  const std::u32string left = code_points(a);
  const std::u32string right = code_points(b);
  if (left.empty() && right.empty()) return 1;
  const double total = static_cast<double>(left.size() + right.size());
  return 2.0 * static_cast<double>(Matcher(left, right).matching()) / total;
}

}  // namespace carnot
