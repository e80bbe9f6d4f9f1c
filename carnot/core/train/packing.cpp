#include "carnot/core/train/packing.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <span>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/credit/entropy_modulate.h"
#include "carnot/core/data/prefix_tree.h"
#include "carnot/core/rollout/log_prob_pass.h"

namespace carnot {
namespace {

/// Tokens [begin, end) of a trajectory that one sequence feeds to the model, and the sampled ones it predicts.
struct PackedSequence {
  int trajectory = 0;
  int begin = 0;
  int end = 0;
  struct Target {
    int token = 0;  ///< offset in the trajectory
    int turn = 0;   ///< of the trajectory's turns
  };
  std::vector<Target> targets{};

  int rows() const { return end - begin; }
};

/// The sequences of one trajectory; those that predict nothing are absent.
std::vector<PackedSequence> sequences_of(const Trajectory& trajectory, int index) {
  std::vector<PackedSequence> sequences;
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const int begin = trajectory.turn_offsets[k];
    if (k == 0 || trajectory.turn(k).context == Context::Fresh)
      sequences.push_back({.trajectory = index, .begin = begin});
    PackedSequence& sequence = sequences.back();
    for (int t = std::max(trajectory.sampled_begin(k), sequence.begin + 1); t < trajectory.sampled_end(k); ++t)
      sequence.targets.push_back({.token = t, .turn = k});
  }
  std::erase_if(sequences, [](const PackedSequence& sequence) { return sequence.targets.empty(); });
  for (PackedSequence& sequence : sequences) sequence.end = sequence.targets.back().token;
  return sequences;
}

/// What a sequence feeds to the model, of its trajectory's tokens.
std::span<const TokenId> fed_tokens(const std::vector<TokenId>& all, const PackedSequence& sequence) {
  return std::span(all).subspan(static_cast<std::size_t>(sequence.begin), static_cast<std::size_t>(sequence.rows()));
}

/// Sequences that must share a micro-batch.
struct Unit {
  std::vector<PackedSequence> sequences{};
  int rows = 0;
};

std::vector<Unit> units_of(std::span<const Trajectory> trajectories, std::span<const int> step,
                           bool whole_trajectories) {
  std::vector<Unit> units;
  for (int index : step) {
    const Trajectory& trajectory = trajectories[index];
    if (!trajectory.leaf().is_included()) continue;
    bool first = true;
    for (PackedSequence& sequence : sequences_of(trajectory, index)) {
      if (first || !whole_trajectories) units.emplace_back();
      first = false;
      units.back().rows += sequence.rows();
      units.back().sequences.push_back(std::move(sequence));
    }
  }
  return units;
}

/// Neighbours of one group together, as far as their common rows fit: what they share is computed once in each unit.
std::vector<Unit> with_shared_prefixes(std::vector<Unit> units, std::span<const Trajectory> trajectories,
                                       int max_tokens) {
  std::vector<Unit> joined;
  PrefixTree tree;  // of the last one
  int group = -1;
  for (Unit& unit : units) {
    const int own_group = trajectories[unit.sequences.front().trajectory].group_index;
    int needed = 0;
    for (const PackedSequence& sequence : unit.sequences)
      needed += tree.num_new_rows(fed_tokens(trajectories[sequence.trajectory].tokens(), sequence));
    if (joined.empty() || own_group != group || tree.num_rows() + needed > max_tokens) {
      joined.emplace_back();
      tree = {};
    }
    group = own_group;
    for (PackedSequence& sequence : unit.sequences) {
      tree.add(fed_tokens(trajectories[sequence.trajectory].tokens(), sequence));
      joined.back().sequences.push_back(std::move(sequence));
    }
    joined.back().rows = tree.num_rows();
  }
  return joined;
}

/// Units by number, bin by bin; within a bin in their original order.
std::vector<std::vector<std::size_t>> fit(const std::vector<Unit>& units, int max_tokens) {
  std::vector<int> rows;
  for (const Unit& unit : units) rows.push_back(unit.rows);
  return first_fit_decreasing(rows, max_tokens);
}

/// The rows of a micro-batch: fewer than it may have where there would be too few of them for all shards.
int rows_of_batches(const std::vector<Unit>& units, const PackingOptions& options) {
  std::int64_t rows = 0;
  for (const Unit& unit : units) rows += unit.rows;
  const std::int64_t share = (rows + options.shards - 1) / options.shards;
  return static_cast<int>(std::clamp<std::int64_t>(share, 1, options.max_tokens));
}

/// What the loss counts as one sequence: a trajectory, or one and a turn of it.
using SequenceKey = std::pair<int, int>;
SequenceKey sequence_key(SequenceUnit unit, int trajectory, int turn) {
  return {trajectory, unit == SequenceUnit::Response ? turn : 0};
}

/// What the denominators need to know of a sequence.
struct Totals {
  double tokens = 0;
  double weight = 0;
};
using TotalsBySequence = std::map<SequenceKey, Totals>;

TotalsBySequence totals_by_sequence(const std::vector<Unit>& units, const CreditTable& credit, SequenceUnit kind) {
  TotalsBySequence totals;
  for (const Unit& unit : units)
    for (const PackedSequence& sequence : unit.sequences) {
      const auto& weight = credit[sequence.trajectory].weight;
      for (const PackedSequence::Target& target : sequence.targets) {
        Totals& own = totals[sequence_key(kind, sequence.trajectory, target.turn)];
        own.tokens += 1;
        own.weight += weight[target.token];
      }
    }
  return totals;
}

Denominators denominators_of(const TotalsBySequence& totals, double constant) {
  Denominators step{.constant = constant};
  for (const auto& [sequence, own] : totals) {
    step.tokens += own.tokens;
    step.weight += own.weight;
    step.sequences += 1;
  }
  return step;
}

template <class Number>
at::Tensor tensor_of(const std::vector<Number>& values) {
  constexpr at::ScalarType kType = std::is_same_v<Number, double> ? at::kDouble : at::kLong;
  const at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())}, kType);
  std::copy(values.begin(), values.end(), tensor.template mutable_data_ptr<Number>());
  return tensor;
}

/// Reads per-token numbers of trajectories, remembering the column at hand of the trajectory at hand.
class Signals {
 public:
  Signals(std::span<const Trajectory> trajectories, const CreditTable& credit, bool partial)
      : trajectories_(trajectories), credit_(credit), partial_(partial) {}

  at::Tensor credit(const std::vector<TokenPlace>& places, std::vector<double> Credit::* member) const {
    std::vector<double> values;
    for (const TokenPlace& place : places) values.push_back((credit_[place.trajectory].*member)[place.token]);
    return tensor_of(values);
  }

  /// Undefined where no trajectory has the column, or where only some may and do.
  at::Tensor column(const std::vector<TokenPlace>& places, Column column) const {
    std::vector<double> values, own;
    int at_hand = -1;
    for (const TokenPlace& place : places) {
      const Trajectory& trajectory = trajectories_[place.trajectory];
      if (!trajectory.tree->columns.has(column)) continue;
      if (place.trajectory != at_hand) own = trajectory.column(column);
      at_hand = place.trajectory;
      values.push_back(own[place.token]);
    }
    if (values.empty()) return at::Tensor();
    if (partial_ && values.size() < places.size()) return at::Tensor();
    CARNOT_CHECK(values.size() == places.size(),
                 std::string(name_of(column)) + " is present for some trajectories only");
    return tensor_of(values);
  }

 private:
  std::span<const Trajectory> trajectories_;
  const CreditTable& credit_;
  bool partial_;
};

/// Multiplies the advantages of all micro-batches by the factors of their tokens' old entropies.
void scale_advantages(std::vector<MicroBatch>& batches, const Signals& signals, double strength) {
  std::vector<double> entropies;
  for (const MicroBatch& batch : batches) {
    const at::Tensor entropy_T = signals.column(batch.places, Column::EntropyOld);
    CARNOT_CHECK_EQ(entropy_T.defined(), true);
    const double* values = entropy_T.const_data_ptr<double>();
    entropies.insert(entropies.end(), values, values + entropy_T.numel());
  }
  const std::vector<double> factors = entropy_scale(entropies, strength);
  std::size_t next = 0;
  for (MicroBatch& batch : batches) {
    double* advantage = batch.inputs.advantage_T.mutable_data_ptr<double>();
    for (std::size_t t = 0; t < batch.places.size(); ++t) advantage[t] *= factors[next++];
  }
}

/// The number of a key, in the order in which they come.
template <class Key>
std::int64_t number_of(std::map<Key, std::int64_t>& numbers, const Key& key) {
  return numbers.try_emplace(key, static_cast<std::int64_t>(numbers.size())).first->second;
}

/// Grows a micro-batch sequence by sequence.
struct Builder {
  std::span<const Trajectory> trajectories;
  SequenceUnit unit = SequenceUnit::Trajectory;
  bool share_prefixes = false;
  PrefixTree tree{};
  std::vector<std::int64_t> rows{}, targets{}, turns{}, sequences{};
  std::map<SequenceKey, std::int64_t> sequence_of{};
  std::map<std::pair<int, int>, std::int64_t> turn_of{};  ///< by trajectory and turn
  MicroBatch batch{};

  void add(const PackedSequence& sequence) {
    const auto all = trajectories[sequence.trajectory].tokens();
    const auto fed = fed_tokens(all, sequence);
    const std::vector<std::int64_t> row_of = share_prefixes ? tree.add(fed) : tree.add_alone(fed);
    for (const auto& [token, turn] : sequence.targets) {
      rows.push_back(row_of[static_cast<std::size_t>(token - 1 - sequence.begin)]);
      targets.push_back(all[token]);
      sequences.push_back(number_of(sequence_of, sequence_key(unit, sequence.trajectory, turn)));
      turns.push_back(number_of(turn_of, {sequence.trajectory, turn}));
      batch.places.push_back({.trajectory = sequence.trajectory, .token = token});
    }
  }

  MicroBatch finish(const Signals& signals, const Denominators& step, const TotalsBySequence& totals) {
    batch.tokens_R = tensor_of(std::vector<std::int64_t>(tree.tokens().begin(), tree.tokens().end()));
    batch.positions_R = tensor_of(tree.positions());
    batch.plan = attention_plan(tree);
    batch.rows_T = tensor_of(rows);
    batch.targets_T = tensor_of(targets);
    LossInputs& inputs = batch.inputs;
    inputs.advantage_T = signals.credit(batch.places, &Credit::advantage);
    inputs.weight_T = signals.credit(batch.places, &Credit::weight);
    inputs.clip_scale_T = signals.credit(batch.places, &Credit::clip_scale);
    inputs.logprob_old_T = signals.column(batch.places, Column::LogProbOld);
    inputs.logprob_rollout_T = signals.column(batch.places, Column::LogProbRollout);
    inputs.logprob_reference_T = signals.column(batch.places, Column::LogProbReference);
    inputs.value_old_T = signals.column(batch.places, Column::Value);
    if (inputs.value_old_T.defined()) inputs.value_target_T = signals.credit(batch.places, &Credit::value_target);
    inputs.turn_T = tensor_of(turns);
    inputs.sequence_T = tensor_of(sequences);
    inputs.num_turns = static_cast<std::int64_t>(turn_of.size());
    inputs.num_sequences = static_cast<std::int64_t>(sequence_of.size());
    batch.step = step;
    batch.step.sequence_weight.resize(sequence_of.size());
    batch.step.sequence_tokens.resize(sequence_of.size());
    for (const auto& [key, number] : sequence_of) {
      const Totals& own = totals.at(key);
      batch.step.sequence_weight[static_cast<std::size_t>(number)] = own.weight;
      batch.step.sequence_tokens[static_cast<std::size_t>(number)] = own.tokens;
    }
    return std::move(batch);
  }
};

/// Bins by number, with the room that each has left; one that is not open yet takes anything.
class Boxes {
 public:
  explicit Boxes(std::size_t most) : leaves_(std::bit_ceil(std::max<std::size_t>(1, most))), left_(2 * leaves_, kAny) {}

  /// The first bin that has room for `size`.
  std::size_t first(std::int64_t size) const {
    std::size_t node = 1;
    while (node < leaves_) node = left_[2 * node] >= size ? 2 * node : 2 * node + 1;
    return node - leaves_;
  }

  void put(std::size_t box, std::int64_t size, std::int64_t room) {
    std::size_t node = leaves_ + box;
    left_[node] = (left_[node] == kAny ? room : left_[node]) - size;
    for (node /= 2; node > 0; node /= 2) left_[node] = std::max(left_[2 * node], left_[2 * node + 1]);
  }

 private:
  static constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();

  std::size_t leaves_;
  std::vector<std::int64_t> left_;  ///< a tree: each node has the most of its two children
};

}  // namespace

std::vector<std::vector<int>> split_minibatches(std::span<const Trajectory> trajectories,
                                                const MinibatchOptions& options) {
  CARNOT_CHECK_GE(options.count, 1);
  std::vector<std::vector<int>> units;
  int last_group = -1;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    if (!trajectories[i].leaf().is_included()) continue;
    const bool joins = options.unit == MinibatchUnit::Group && trajectories[i].group_index == last_group;
    if (!joins) units.emplace_back();
    units.back().push_back(static_cast<int>(i));
    last_group = trajectories[i].group_index;
  }
  if (options.shuffle) RandomStream(options.seed).shuffle(units);

  const std::size_t parts = std::min(static_cast<std::size_t>(options.count), units.size());
  std::vector<std::vector<int>> minibatches(parts);
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::size_t u = units.size() * part / parts; u < units.size() * (part + 1) / parts; ++u)
      minibatches[part].insert(minibatches[part].end(), units[u].begin(), units[u].end());
    std::sort(minibatches[part].begin(), minibatches[part].end());
  }
  return minibatches;
}

std::vector<std::vector<std::size_t>> first_fit_decreasing(std::span<const int> sizes, int room) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  Boxes boxes(sizes.size());
  std::vector<std::vector<std::size_t>> things;
  for (const std::size_t thing : order) {
    const std::size_t box = boxes.first(sizes[thing]);
    boxes.put(box, sizes[thing], room);
    if (box == things.size()) things.emplace_back();
    things[box].push_back(thing);
  }
  for (auto& in_box : things) std::sort(in_box.begin(), in_box.end());
  return things;
}

std::vector<MicroBatch> pack(std::span<const Trajectory> trajectories, const CreditTable& credit,
                             std::span<const int> step, const PackingOptions& options) {
  CARNOT_CHECK_EQ(trajectories.size(), credit.size());
  CARNOT_CHECK_GE(options.max_tokens, 1);
  CARNOT_CHECK_GE(options.shards, 1);
  std::vector<Unit> units = units_of(trajectories, step, options.whole_trajectories);
  const TotalsBySequence totals = totals_by_sequence(units, credit, options.sequence);
  const Denominators denominators = denominators_of(totals, options.constant);
  const Signals signals(trajectories, credit, options.partial_signals);
  std::vector<MicroBatch> batches;
  // A shard's share of what is to be computed, if nothing were shared.
  const int most = options.shards == 1 ? options.max_tokens : rows_of_batches(units, options);
  if (options.share_prefixes) units = with_shared_prefixes(std::move(units), trajectories, most);
  for (const auto& bin : fit(units, most)) {
    Builder builder{.trajectories = trajectories, .unit = options.sequence, .share_prefixes = options.share_prefixes};
    for (std::size_t unit : bin)
      for (const PackedSequence& sequence : units[unit].sequences) builder.add(sequence);
    batches.push_back(builder.finish(signals, denominators, totals));
  }
  if (options.entropy_scale != 0) scale_advantages(batches, signals, options.entropy_scale);
  return batches;
}

LossInputs policy_inputs(const Model& policy, const MicroBatch& batch, const StatisticsOptions& options,
                         ExpertBalance* balance) {
  const at::Tensor hidden_TH = policy.hidden(batch.tokens_R, batch.positions_R, batch.plan, balance)
                                   .index_select(0, batch.rows_T.to(policy.options().device()));
  const TokenStatistics statistics = token_statistics(hidden_TH, policy, batch.targets_T, options);
  LossInputs inputs = batch.inputs;
  inputs.logprob_T = statistics.logprob_T;
  inputs.entropy_T = statistics.entropy_T;
  inputs.clamped_entropy_T = statistics.clamped_entropy_T;
  return inputs;
}

}  // namespace carnot
