#include "carnot/core/rollout/measure.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/data/trajectory.h"
#include "carnot/core/rollout/log_prob_pass.h"

namespace carnot {
namespace {

/// Where a measured token belongs.
struct Place {
  Tree* tree = nullptr;
  int turn = 0;
  int offset = 0;
};

struct SampledTokens {
  std::vector<MeasuredSequence> sequences{};
  std::vector<Place> places{};  ///< by target
};

/// The sampled tokens of the trajectory's turns that no earlier one has measured; every Fresh turn begins a sequence.
void add_trajectory(SampledTokens& sampled, Tree& tree, const Trajectory& trajectory, std::vector<bool>& measured) {
  const std::vector<TokenId> tokens = trajectory.tokens();
  int begin = 0;
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const int offset = trajectory.turn_offsets[k];
    if (k == 0 || trajectory.turn(k).context == Context::Fresh) {
      begin = offset;
      sampled.sequences.emplace_back();
    }
    MeasuredSequence& sequence = sampled.sequences.back();
    sequence.tokens.assign(tokens.begin() + begin,
                           tokens.begin() + trajectory.turn_offsets[static_cast<std::size_t>(k) + 1]);
    const int turn = trajectory.turns[k];
    if (measured[turn]) continue;
    measured[turn] = true;
    for (int t = std::max(trajectory.sampled_begin(k), begin + 1); t < trajectory.sampled_end(k); ++t) {
      sequence.targets.push_back(t - begin);
      sampled.places.push_back({.tree = &tree, .turn = turn, .offset = t - offset});
    }
  }
}

enum class MeasuredLeaves { Included, All };

SampledTokens sampled_tokens(std::span<Group> groups, MeasuredLeaves which) {
  SampledTokens sampled;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t t = 0; t < groups[g].trees.size(); ++t) {
      Tree& tree = groups[g].trees[t];
      std::vector<bool> measured(tree.turns.size(), false);
      for (std::size_t leaf = 0; leaf < tree.leaves.size(); ++leaf) {
        if (which == MeasuredLeaves::Included && !tree.leaves[leaf].is_included()) continue;
        add_trajectory(sampled, tree,
                       trajectory(groups[g], static_cast<int>(g), static_cast<int>(t), static_cast<int>(leaf)),
                       measured);
      }
    }
  }
  return sampled;
}

/// Sets the column in every tree of the groups to NaN.
void open_column(std::span<Group> groups, Column column) {
  for (Group& group : groups) {
    for (Tree& tree : group.trees) {
      tree.columns.clear(column);
      for (std::size_t t = 0; t < tree.turns.size(); ++t)
        tree.columns.edit(column, static_cast<int>(t), static_cast<int>(tree.turns[t].tokens.size()));
    }
  }
}

void write_column(std::span<Group> groups, const SampledTokens& sampled, Column column,
                  const std::vector<double>& values) {
  CARNOT_CHECK_EQ(values.size(), sampled.places.size());
  open_column(groups, column);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Place& place = sampled.places[i];
    const int size = static_cast<int>(place.tree->turns[place.turn].tokens.size());
    place.tree->columns.edit(column, place.turn, size)[place.offset] = values[i];
  }
}

/// What the trees hold, by place. REQUIRES: the column.
std::vector<double> column_values(const SampledTokens& sampled, Column column) {
  std::vector<double> values;
  values.reserve(sampled.places.size());
  for (const Place& place : sampled.places)
    values.push_back(place.tree->columns.turn(column, place.turn)[place.offset]);
  return values;
}

/// Difference between the trees' column and these values. REQUIRES: the column.
ColumnDifference difference_to(const SampledTokens& sampled, Column column, const std::vector<double>& values) {
  ColumnDifference difference{.tokens = static_cast<std::int64_t>(values.size())};
  const std::vector<double> there = column_values(sampled, column);
  for (std::size_t i = 0; i < values.size(); ++i)
    difference.largest = std::max(difference.largest, std::abs(there[i] - values[i]));
  return difference;
}

double temperature_of(const LogProbPassOptions& options) { return options.temperature == 0 ? 1 : options.temperature; }

}  // namespace

void measure_old_policy(const Model& policy, std::span<Group> groups, const LogProbPassOptions& options) {
  const SampledTokens sampled = sampled_tokens(groups, MeasuredLeaves::Included);
  const TargetStatistics statistics =
      measure_targets(policy, sampled.sequences, options.max_tokens, temperature_of(options));
  write_column(groups, sampled, Column::LogProbOld, statistics.log_prob);
  write_column(groups, sampled, Column::EntropyOld, statistics.entropy);
}

ColumnDifference measure_rollout(const Model& policy, std::span<Group> groups, const LogProbPassOptions& options) {
  const SampledTokens sampled = sampled_tokens(groups, MeasuredLeaves::All);
  const TargetStatistics statistics =
      measure_targets(policy, sampled.sequences, options.max_tokens, temperature_of(options));
  const ColumnDifference difference = difference_to(sampled, Column::LogProbRollout, statistics.log_prob);
  write_column(groups, sampled, Column::LogProbRollout, statistics.log_prob);
  write_column(groups, sampled, Column::EntropyRollout, statistics.entropy);
  return difference;
}

void reuse_rollout_statistics(std::span<Group> groups) {
  const SampledTokens sampled = sampled_tokens(groups, MeasuredLeaves::Included);
  write_column(groups, sampled, Column::LogProbOld, column_values(sampled, Column::LogProbRollout));
  write_column(groups, sampled, Column::EntropyOld, column_values(sampled, Column::EntropyRollout));
}

void measure_reference(const Model& reference, std::span<Group> groups, const LogProbPassOptions& options) {
  const SampledTokens sampled = sampled_tokens(groups, MeasuredLeaves::Included);
  const double temperature = temperature_of(options);
  const TargetStatistics statistics = measure_targets(reference, sampled.sequences, options.max_tokens, temperature);
  write_column(groups, sampled, Column::LogProbReference, statistics.log_prob);
  write_column(groups, sampled, Column::EntropyReference, statistics.entropy);
  std::vector<double> energy = statistics.logsumexp;
  if (temperature != 1) energy = measure_targets(reference, sampled.sequences, options.max_tokens, 1).logsumexp;
  for (double& value : energy) value = -value;
  write_column(groups, sampled, Column::EnergyReference, energy);
}

void measure_values(const ValueModel& critic, std::span<Group> groups, const LogProbPassOptions& options) {
  const at::NoGradGuard no_grad;
  const SampledTokens sampled = sampled_tokens(groups, MeasuredLeaves::Included);
  std::vector<double> values;
  for (const LogProbBatch& batch : log_prob_batches(sampled.sequences, options.max_tokens)) {
    const at::Tensor values_R = critic.values(batch.tokens_R(), batch.positions_R(), batch.plan);
    const auto of_targets = to_doubles(values_R.index_select(0, batch.rows_T().to(values_R.device())));
    values.insert(values.end(), of_targets.begin(), of_targets.end());
  }
  write_column(groups, sampled, Column::Value, values);
}

}  // namespace carnot
