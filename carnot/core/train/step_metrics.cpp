#include "carnot/core/train/step_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "carnot/core/base/statistics.h"
#include "carnot/core/data/tool_call.h"
#include "carnot/core/loss/ratio.h"

namespace carnot {
namespace {

/// Mean, largest and smallest of the added values; writes nothing if there are none.
class Spread {
 public:
  void add(double value) {
    sum_ += value;
    count_ += 1;
    highest_ = std::max(highest_, value);
    lowest_ = std::min(lowest_, value);
  }

  void write(std::map<std::string, double>& metrics, const std::string& name) const {
    if (count_ == 0) return;
    metrics[name + "/mean"] = sum_ / count_;
    metrics[name + "/max"] = highest_;
    metrics[name + "/min"] = lowest_;
  }

  void write_mean(std::map<std::string, double>& metrics, const std::string& name) const {
    if (count_ > 0) metrics[name] = sum_ / count_;
  }

 private:
  double sum_ = 0, count_ = 0;
  double highest_ = -std::numeric_limits<double>::infinity();
  double lowest_ = std::numeric_limits<double>::infinity();
};

// Later turns are counted together.
constexpr int kTurnsShown = 8;

struct EntropySpreads {
  Spread think, action;
  std::vector<Spread> turn = std::vector<Spread>(kTurnsShown);

  void add(const Trajectory& view) {
    if (!view.tree->columns.has(Column::EntropyRollout)) return;
    for (int k = 0; k < view.num_turns(); ++k) {
      const Turn& turn_k = view.turn(k);
      const auto& values = view.tree->columns.turn(Column::EntropyRollout, view.turns[k]);
      for (const Span& span : turn_k.spans) {
        for (int i = std::max(span.begin, turn_k.sampled_begin); i < std::min(span.end, turn_k.sampled_end); ++i) {
          const double h = values[i];
          if (std::isnan(h)) continue;
          (span.kind == SpanKind::Action ? action : think).add(h);
          turn[std::min(k, kTurnsShown - 1)].add(h);
        }
      }
    }
  }

  void write(std::map<std::string, double>& metrics) const {
    think.write_mean(metrics, "entropy/role_think");
    action.write_mean(metrics, "entropy/role_act");
    for (int k = 0; k < kTurnsShown; ++k) turn[k].write_mean(metrics, "entropy/turn_" + std::to_string(k));
  }
};

/// How much of the variance of the critic's targets its values explain.
struct ExplainedVariance {
  std::vector<double> targets{}, errors{};

  void add(double target, double value) {
    targets.push_back(target);
    errors.push_back(target - value);
  }

  void write(std::map<std::string, double>& metrics) const {
    if (targets.size() < 2) return;
    const double unexplained = std_sample(errors), spread = std_sample(targets);
    // The constant is verl's: it keeps equal targets from giving infinity.
    metrics["critic/vf_explained_var"] = 1 - unexplained * unexplained / (spread * spread + 1e-5);
  }
};

double bounded(double log_ratio) { return std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio); }

struct Sums {
  double tokens = 0, trajectories = 0;
  double log_ratio = 0, k3 = 0, token_square = 0;
  double trajectory_square = 0;  ///< of the product of a trajectory's ratios
  double weight = 0, weight_square = 0;

  void add(const Trajectory& trajectory, double cap) {
    const std::vector<double> old = trajectory.column(Column::LogProbOld);
    const std::vector<double> rollout = trajectory.column(Column::LogProbRollout);
    const std::vector<bool> sampled = trajectory.sampled();
    double total = 0;
    for (std::size_t t = 0; t < sampled.size(); ++t) {
      const double difference = old[t] - rollout[t];
      if (!sampled[t] || std::isnan(difference)) continue;
      total += difference;
      add_token(bounded(difference), cap);
    }
    trajectories += 1;
    trajectory_square += std::exp(2 * bounded(total));
  }

  void add_token(double x, double cap) {
    const double ratio = std::exp(x), importance = cap > 0 ? std::min(ratio, cap) : ratio;
    tokens += 1;
    log_ratio += x;
    k3 += ratio - 1 - x;
    token_square += ratio * ratio;
    weight += importance;
    weight_square += importance * importance;
  }
};

}  // namespace

std::map<std::string, double> trajectory_metrics(std::span<const Trajectory> trajectories,
                                                 const std::string& environment) {
  std::map<std::string, double> metrics;
  Spread score, reward, length, turns, success, infra, clipped, calls, failed_calls, invalid;
  std::map<std::string, Spread> measures;
  EntropySpreads entropy;
  std::map<int, std::pair<double, bool>> first_reward;  // of each group, and whether another differs
  for (const Trajectory& view : trajectories) {
    const Leaf& leaf = view.leaf();
    infra.add(leaf.valid() ? 0 : 1);
    if (!leaf.valid()) continue;
    score.add(leaf.score);
    reward.add(view.penalised_score());
    success.add(leaf.success ? 1 : 0);
    length.add(view.num_sampled());
    turns.add(view.num_turns());
    clipped.add(leaf.outcome == Outcome::OutOfTokens ? 1 : 0);
    int tool_calls = 0;
    for (int k = 0; k < view.num_turns(); ++k) {
      tool_calls += view.turn(k).tool.empty() ? 0 : 1;
      if (!view.turn(k).tool.empty()) failed_calls.add(is_failed_call(view.turn(k)) ? 1 : 0);
      invalid.add(view.turn(k).valid_action ? 0 : 1);
    }
    calls.add(tool_calls);
    for (const auto& [name, value] : leaf.measures) measures[name].add(value);
    entropy.add(view);
    const auto [place, fresh] = first_reward.try_emplace(view.group_index, view.penalised_score(), false);
    if (!fresh && place->second.first != view.penalised_score()) place->second.second = true;
  }
  score.write(metrics, "critic/score");
  reward.write(metrics, "critic/rewards");
  length.write(metrics, "response_length");
  turns.write(metrics, "num_turns");
  calls.write(metrics, "tool_call_counts");
  failed_calls.write_mean(metrics, "tool_call_errors");
  clipped.write_mean(metrics, "response_length/clip_ratio");
  success.write_mean(metrics, "env/" + environment + "/success");
  infra.write_mean(metrics, "env/" + environment + "/infra_error");
  invalid.write_mean(metrics, "env/" + environment + "/invalid_action");
  for (const auto& [name, spread] : measures) spread.write_mean(metrics, "env/" + environment + "/" + name);
  entropy.write(metrics);
  Spread dead;
  for (const auto& [group, state] : first_reward) dead.add(state.second ? 0 : 1);
  dead.write_mean(metrics, "frac_reward_zero_std");
  return metrics;
}

double duplicate_tasks(std::span<const Group> groups) {
  std::set<std::tuple<std::vector<TokenId>, std::vector<std::string>, std::map<std::string, std::string>>> tasks;
  std::size_t counted = 0;
  for (const Group& group : groups) {
    if (group.trees.empty() || group.trees.front().turns.empty()) continue;
    const Turn& first = group.trees.front().turns.front();
    tasks.emplace(std::vector<TokenId>(first.tokens.begin(), first.tokens.begin() + first.sampled_begin),
                  group.ground_truth, group.info);
    ++counted;
  }
  return counted == 0 ? 0 : static_cast<double>(counted - tasks.size()) / static_cast<double>(counted);
}

std::map<std::string, double> credit_metrics(std::span<const Trajectory> trajectories, const CreditTable& credit) {
  Spread advantage, weight, clip_scale, target, value;
  ExplainedVariance explained;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    const Trajectory& view = trajectories[i];
    if (!view.leaf().is_included()) continue;
    const auto values = view.tree->columns.has(Column::Value) ? view.column(Column::Value) : std::vector<double>();
    for (int k = 0; k < view.num_turns(); ++k) {
      for (int t = view.sampled_begin(k); t < view.sampled_end(k); ++t) {
        const auto at = static_cast<std::size_t>(t);
        advantage.add(credit[i].advantage[at]);
        weight.add(credit[i].weight[at]);
        clip_scale.add(credit[i].clip_scale[at]);
        if (values.empty() || std::isnan(credit[i].value_target[at])) continue;
        target.add(credit[i].value_target[at]);
        value.add(values[at]);
        explained.add(credit[i].value_target[at], values[at]);
      }
    }
  }
  std::map<std::string, double> metrics;
  advantage.write(metrics, "critic/advantages");
  target.write(metrics, "critic/returns");
  value.write(metrics, "critic/values");
  explained.write(metrics);
  weight.write(metrics, "credit/weight");
  clip_scale.write(metrics, "credit/clip_scale");
  return metrics;
}

std::optional<double> kl_to_reference(std::span<const Trajectory> trajectories) {
  double sum = 0, count = 0;
  for (const Trajectory& view : trajectories) {
    const Columns& columns = view.tree->columns;
    if (!view.leaf().is_included() || !columns.has(Column::LogProbOld) || !columns.has(Column::LogProbReference))
      continue;
    const std::vector<double> old = view.column(Column::LogProbOld), reference = view.column(Column::LogProbReference);
    const std::vector<bool> sampled = view.sampled();
    double own = 0, tokens = 0;
    for (std::size_t t = 0; t < sampled.size(); ++t) {
      if (!sampled[t] || std::isnan(old[t] - reference[t])) continue;
      own += old[t] - reference[t];
      tokens += 1;
    }
    if (tokens == 0) continue;
    sum += own / tokens;
    count += 1;
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

std::map<std::string, double> rollout_metrics(const RolloutMetrics& m) {
  const double seconds = std::max(m.seconds, 1e-9);
  return {{"timing_s/gen", m.seconds},
          {"timing_s/gen_forward", m.seconds_forward},
          {"timing_s/gen_sampling", m.seconds_sampling},
          {"timing_s/gen_scheduling", m.seconds_scheduling},
          {"timing_s/gen_waiting", m.seconds_waiting},
          {"timing_s/environment", m.seconds_environment},
          {"perf/rollout_tokens_per_s", static_cast<double>(m.sampled_tokens) / seconds},
          {"rollout/sampled_tokens", static_cast<double>(m.sampled_tokens)},
          {"perf/computed_rows", static_cast<double>(m.computed_rows)},
          {"perf/evictions", static_cast<double>(m.evictions)},
          {"rollout/branches", static_cast<double>(m.branches)},
          {"rollout/infra_failures", static_cast<double>(m.infra_failures)}};
}

std::map<std::string, double> mismatch_metrics(std::span<const Trajectory> trajectories, double importance_cap) {
  Sums sums;
  for (const Trajectory& trajectory : trajectories) {
    const Columns& columns = trajectory.tree->columns;
    if (trajectory.leaf().is_included() && columns.has(Column::LogProbOld) && columns.has(Column::LogProbRollout))
      sums.add(trajectory, importance_cap);
  }
  if (sums.tokens == 0) return {};
  std::map<std::string, double> metrics{
      {"rollout_corr/kl", -sums.log_ratio / sums.tokens},
      {"rollout_corr/k3_kl", sums.k3 / sums.tokens},
      {"rollout_corr/chi2_token", sums.token_square / sums.tokens - 1},
      {"rollout_corr/chi2_seq", sums.trajectory_square / sums.trajectories - 1},
      {"rollout_corr/rollout_is_eff_sample_size", sums.weight * sums.weight / (sums.tokens * sums.weight_square)}};
  if (importance_cap > 0) metrics["rollout_corr/rollout_is_mean"] = sums.weight / sums.tokens;
  return metrics;
}

}  // namespace carnot
