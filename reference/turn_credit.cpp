#include "reference/turn_credit.h"

#include <cmath>
#include <set>

#include "reference/group_advantage.h"

namespace carnot::reference {
namespace {

bool same_group(const Trajectory& a, const Trajectory& b) {
  return b.leaf().is_included() && a.group_index == b.group_index;
}
bool same_tree(const Trajectory& a, const Trajectory& b) { return same_group(a, b) && a.tree_index == b.tree_index; }

double pool_mean(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

double population_z(const std::vector<double>& pool, double x) {
  bool equal = true;
  double variance = 0;
  for (double value : pool) {
    variance += std::pow(value - pool_mean(pool), 2) / static_cast<double>(pool.size());
    equal = equal && value == pool.front();
  }
  return equal ? 0 : (x - pool_mean(pool)) / (std::sqrt(variance + 1e-8) + 1e-6);
}

double return_of(const Trajectory& one, int k, double discount) {
  double sum = 0;
  for (int later = k; later < one.num_turns(); ++later) sum += std::pow(discount, later - k) * one.turn(later).reward;
  return sum + one.turn(k).penalty;
}

double entropy_of(const Trajectory& one, int k) {
  const auto entropy = one.column(Column::EntropyOld);
  double sum = 0;
  for (int t = one.sampled_begin(k); t < one.sampled_end(k); ++t) sum += entropy[t];
  return sum / one.turn(k).num_sampled();
}

double sample_z(const std::vector<double>& pool, double x) {
  for (std::size_t j = 0; j < pool.size(); ++j)
    if (pool[j] == x) return group_relative(pool, j, true);
  return 0;
}

}  // namespace

double step_advantage(Steps all, std::size_t i, int k, double discount) {
  const std::string& anchor = all[i].turn(k).anchor;
  std::vector<double> pool;
  for (const Trajectory& one : all)
    for (int other = 0; same_group(all[i], one) && other < one.num_turns(); ++other)
      if (one.turn(other).num_sampled() > 0 && one.turn(other).anchor == anchor && !anchor.empty())
        pool.push_back(return_of(one, other, discount));
  return sample_z(pool, return_of(all[i], k, discount));
}

double turn_gain_z(Steps all, std::size_t i, int k) {
  if (!all[i].turn(k).info_gain) return 0;
  std::vector<double> pool;
  std::set<const Turn*> seen;
  for (const Trajectory& one : all)
    if (same_group(all[i], one) && k < one.num_turns() && one.turn(k).info_gain && seen.insert(&one.turn(k)).second)
      pool.push_back(*one.turn(k).info_gain);
  return population_z(pool, *all[i].turn(k).info_gain);
}

double accumulated_gain(Steps all, std::size_t i, int k, double discount) {
  double sum = 0;
  double terms = 0;
  for (int later = k; later < all[i].num_turns(); ++later) {
    if (!all[i].turn(later).info_gain) continue;
    sum += std::pow(discount, later - k) * turn_gain_z(all, i, later);
    ++terms;
  }
  return terms == 0 ? 0 : sum / std::sqrt(terms);
}

double joint_gain(Steps all, std::size_t i, int k, double discount, bool separate) {
  std::vector<double> gains, outcomes;
  for (const Trajectory& one : all) {
    if (!same_group(all[i], one)) continue;
    outcomes.push_back(one.penalised_score());
    for (int turn = 0; turn < one.num_turns(); ++turn)
      if (one.turn(turn).info_gain) gains.push_back(*one.turn(turn).info_gain);
  }
  std::vector<double> both = gains;
  both.insert(both.end(), outcomes.begin(), outcomes.end());
  const int last = all[i].num_turns() - 1;
  double sum = std::pow(discount, last - k) * population_z(separate ? outcomes : both, all[i].penalised_score());
  for (int later = k; later <= last; ++later)
    if (all[i].turn(later).info_gain)
      sum += std::pow(discount, later - k) * population_z(separate ? gains : both, *all[i].turn(later).info_gain);
  return sum;
}

double tree_advantage(Steps all, std::size_t i) {
  std::vector<double> group, tree;
  for (const Trajectory& one : all) {
    if (same_group(all[i], one)) group.push_back(one.penalised_score());
    if (same_tree(all[i], one)) tree.push_back(one.penalised_score());
  }
  return sample_z(group, all[i].penalised_score()) + sample_z(tree, all[i].penalised_score());
}

double entropy_factor(Steps all, std::size_t i, int k, double strength) {
  std::set<const Turn*> seen;
  std::vector<double> pool;
  for (const Trajectory& one : all)
    for (int turn = 0; same_group(all[i], one) && turn < one.num_turns(); ++turn)
      if (one.turn(turn).num_sampled() > 0 && seen.insert(&one.turn(turn)).second)
        pool.push_back(entropy_of(one, turn));
  double low = pool[0], high = pool[0];
  for (double h : pool) {
    low = std::min(low, h);
    high = std::max(high, h);
  }
  if (high - low < 0.1) return 1;
  const auto raw = [&](double h) { return std::exp(-strength * (h - low) / (high - low + 1e-8)); };
  double sum = 0;
  for (double h : pool) sum += raw(h);
  return raw(entropy_of(all[i], k)) / (sum / static_cast<double>(pool.size()) + 1e-8);
}

double span_weight(Steps all, std::size_t i, std::size_t t, double think, double action) {
  if (all[i].kinds()[t] != SpanKind::Action) return think;
  std::vector<double> pool;
  for (const Trajectory& one : all) {
    if (!one.leaf().is_included()) continue;
    const auto kinds = one.kinds();
    const auto sampled = one.sampled();
    const auto energy = one.column(Column::EnergyReference);
    for (std::size_t token = 0; token < kinds.size(); ++token)
      if (sampled[token] && kinds[token] == SpanKind::Action) pool.push_back(energy[token]);
  }
  double variance = 0;
  const double centre = pool_mean(pool);
  for (double e : pool) variance += (e - centre) * (e - centre) / static_cast<double>(pool.size());
  const double z = (all[i].column(Column::EnergyReference)[t] - centre) / std::sqrt(variance + 1e-8);
  return 1 + action / (1 + std::exp(-z));
}

double shared_mean(Steps all, std::size_t i, int k, const std::vector<double>& value) {
  double sum = 0;
  double count = 0;
  for (std::size_t j = 0; j < all.size(); ++j)
    for (int turn = 0; same_tree(all[i], all[j]) && turn < all[j].num_turns(); ++turn)
      if (&all[j].turn(turn) == &all[i].turn(k)) {
        sum += value[j];
        ++count;
      }
  return sum / count;
}

double bilevel_advantage(const std::vector<double>& reward, const std::vector<double>& value,
                         const std::vector<bool>& ends, std::size_t t, double gamma, double lambda, double turn_gamma) {
  std::vector<double> end_reward, end_value;
  std::size_t own_end = reward.size();
  std::size_t own_number = 0;
  for (std::size_t s = 0; s < reward.size(); ++s) {
    if (!ends[s]) continue;
    if (s >= t && own_end == reward.size()) {
      own_end = s;
      own_number = end_reward.size();
    }
    end_reward.push_back(reward[s]);
    end_value.push_back(value[s]);
  }
  std::vector<double> inside(reward.begin() + static_cast<std::ptrdiff_t>(t),
                             reward.begin() + static_cast<std::ptrdiff_t>(own_end) + 1);
  const std::vector<double> values(value.begin() + static_cast<std::ptrdiff_t>(t),
                                   value.begin() + static_cast<std::ptrdiff_t>(own_end) + 1);
  inside.back() = gae(end_reward, end_value, own_number, turn_gamma, lambda) + values.back();
  return gae(inside, values, 0, gamma, lambda);
}

}  // namespace carnot::reference
