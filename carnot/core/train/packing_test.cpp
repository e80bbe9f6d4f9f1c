#include "carnot/core/train/packing.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "carnot/core/base/check.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/nn/token_statistics.h"
#include "testing/absent_members.h"
#include "testing/random_step.h"

namespace carnot {
namespace {

using testing::random_step;
using testing::RandomStep;

/// One by one, as the definition says: is the token trained, and where does the sequence that predicts it begin?
struct TrainedToken {
  TokenPlace place;
  int begin;
  int turn;
};
std::vector<TrainedToken> trained_tokens(const RandomStep& step) {
  std::vector<TrainedToken> trained;
  for (std::size_t i = 0; i < step.all.size(); ++i) {
    const Trajectory& trajectory = step.all[i];
    if (trajectory.leaf().outcome == Outcome::InfraFailed || trajectory.leaf().dropped) continue;
    int begin = 0;
    for (int k = 0; k < trajectory.num_turns(); ++k) {
      if (trajectory.turn(k).context == Context::Fresh) begin = trajectory.turn_offsets[k];
      for (int t = trajectory.sampled_begin(k); t < trajectory.sampled_end(k); ++t)
        if (t > begin) trained.push_back({{static_cast<int>(i), t}, begin, k});
    }
  }
  return trained;
}

std::int64_t integer(const at::Tensor& tensor, std::size_t i) { return tensor.const_data_ptr<std::int64_t>()[i]; }
double number(const at::Tensor& tensor, std::size_t i) { return tensor.const_data_ptr<double>()[i]; }

/// The rows that a row attends to, by position.
std::vector<std::size_t> visible_rows(const PackedAttention& plan, int row) {
  int sequence =
      static_cast<int>(std::upper_bound(plan.offsets.begin(), plan.offsets.end(), row) - plan.offsets.begin()) - 1;
  const auto begin_of = [&](int s) { return plan.offsets[static_cast<std::size_t>(s)]; };
  int position = plan.past_of(sequence) + row - begin_of(sequence) + 1;
  std::vector<std::size_t> rows(static_cast<std::size_t>(position));
  for (; position > 0; sequence = plan.parent(sequence))
    for (; position > plan.past_of(sequence); --position)
      rows[static_cast<std::size_t>(position - 1)] =
          static_cast<std::size_t>(begin_of(sequence) + position - 1 - plan.past_of(sequence));
  return rows;
}

TEST(Packing, HoldsEverySampledTokenOnceBehindItsOwnContext) {
  RandomStream random(1);
  for (int trial = 0; trial < 60; ++trial) {
    const RandomStep step = random_step(random);
    const PackingOptions options{.max_tokens = 1 + static_cast<int>(random.below(80)),
                                 .whole_trajectories = random.chance(0.3),
                                 .share_prefixes = trial % 2 == 1};
    std::map<std::pair<int, int>, int> begin_of;
    for (const TrainedToken& token : trained_tokens(step))
      begin_of[{token.place.trajectory, token.place.token}] = token.begin;

    for (const MicroBatch& batch : pack(step.all, step.credit, step.indices, options)) {
      ASSERT_EQ(batch.plan.offsets.back(), batch.tokens_R.numel());
      for (std::size_t t = 0; t < batch.places.size(); ++t) {
        const auto [trajectory, token] = batch.places[t];
        const auto expected = begin_of.find({trajectory, token});
        ASSERT_NE(expected, begin_of.end()) << "not trained, or packed twice";
        const auto tokens = step.all[trajectory].tokens();
        const std::vector<std::size_t> rows = visible_rows(batch.plan, static_cast<int>(integer(batch.rows_T, t)));
        ASSERT_EQ(static_cast<int>(rows.size()), token - expected->second);
        for (std::size_t p = 0; p < rows.size(); ++p) {
          ASSERT_EQ(integer(batch.tokens_R, rows[p]), tokens[static_cast<std::size_t>(expected->second) + p]);
          ASSERT_EQ(integer(batch.positions_R, rows[p]), static_cast<std::int64_t>(p));
        }
        EXPECT_EQ(integer(batch.targets_T, t), tokens[token]);
        begin_of.erase(expected);
      }
    }
    EXPECT_TRUE(begin_of.empty()) << begin_of.size() << " tokens are lost";
  }
}

TEST(Packing, HoldsEachTokensSignalsAndCredit) {
  RandomStream random(2);
  const RandomStep step = random_step(random);
  for (const MicroBatch& batch : pack(step.all, step.credit, step.indices, {.max_tokens = 40})) {
    const LossInputs& in = batch.inputs;
    for (std::size_t t = 0; t < batch.places.size(); ++t) {
      const auto i = static_cast<std::size_t>(batch.places[t].trajectory);
      const auto at = static_cast<std::size_t>(batch.places[t].token);
      EXPECT_EQ(number(in.advantage_T, t), step.credit[i].advantage[at]);
      EXPECT_EQ(number(in.weight_T, t), step.credit[i].weight[at]);
      EXPECT_EQ(number(in.clip_scale_T, t), step.credit[i].clip_scale[at]);
      EXPECT_EQ(number(in.value_target_T, t), step.credit[i].value_target[at]);
      EXPECT_EQ(number(in.logprob_old_T, t), step.all[i].column(Column::LogProbOld)[at]);
      EXPECT_EQ(number(in.logprob_rollout_T, t), step.all[i].column(Column::LogProbRollout)[at]);
      EXPECT_EQ(number(in.logprob_reference_T, t), step.all[i].column(Column::LogProbReference)[at]);
      EXPECT_EQ(number(in.value_old_T, t), step.all[i].column(Column::Value)[at]);
    }
  }
}

TEST(Packing, ScalesAdvantagesByEntropyOverTheWholeStepHoweverItIsPacked) {
  RandomStream random(12);
  const RandomStep step = random_step(random);
  std::map<std::pair<int, int>, double> entropy_of;
  double sum = 0, squares = 0;
  for (const TrainedToken& token : trained_tokens(step)) {
    const auto column = step.all[token.place.trajectory].column(Column::EntropyOld);
    const double entropy = column[token.place.token];
    entropy_of[{token.place.trajectory, token.place.token}] = entropy;
    sum += entropy;
  }
  const auto count = static_cast<double>(entropy_of.size());
  for (const auto& [place, entropy] : entropy_of) squares += (entropy - sum / count) * (entropy - sum / count);
  const double spread = std::sqrt(squares / (count - 1));
  for (const int max_tokens : {15, 100000})
    for (const MicroBatch& batch :
         pack(step.all, step.credit, step.indices, {.max_tokens = max_tokens, .entropy_scale = 0.2}))
      for (std::size_t t = 0; t < batch.places.size(); ++t) {
        const auto [trajectory, token] = batch.places[t];
        const double factor = 1 + 0.2 * (entropy_of.at({trajectory, token}) - sum / count) / spread;
        const double plain = step.credit[trajectory].advantage[token];
        EXPECT_NEAR(number(batch.inputs.advantage_T, t), factor * plain, 1e-12 * (1 + std::fabs(plain)));
      }
}

/// A trajectory, or one and a turn of it.
std::pair<int, int> sequence_of(SequenceUnit unit, const TrainedToken& token) {
  return {token.place.trajectory, unit == SequenceUnit::Response ? token.turn : -1};
}

TEST(Packing, NumbersTurnsAndSequencesWithinTheMicroBatch) {
  RandomStream random(3);
  for (int trial = 0; trial < 20; ++trial)
    for (const SequenceUnit unit : {SequenceUnit::Trajectory, SequenceUnit::Response}) {
      const RandomStep step = random_step(random);
      std::map<std::pair<int, int>, TrainedToken> trained;
      for (const TrainedToken& token : trained_tokens(step))
        trained[{token.place.trajectory, token.place.token}] = token;
      for (const MicroBatch& batch : pack(step.all, step.credit, step.indices, {.max_tokens = 60, .sequence = unit})) {
        std::map<std::int64_t, std::set<std::pair<int, int>>> sequences, turns;
        std::set<std::pair<int, int>> all_sequences, all_turns;
        for (std::size_t t = 0; t < batch.places.size(); ++t) {
          const TrainedToken& token = trained.at({batch.places[t].trajectory, batch.places[t].token});
          sequences[integer(batch.inputs.sequence_T, t)].insert(sequence_of(unit, token));
          turns[integer(batch.inputs.turn_T, t)].insert({token.place.trajectory, token.turn});
          all_sequences.insert(sequence_of(unit, token));
          all_turns.insert({token.place.trajectory, token.turn});
        }
        EXPECT_EQ(static_cast<std::int64_t>(all_sequences.size()), batch.inputs.num_sequences);
        EXPECT_EQ(static_cast<std::int64_t>(all_turns.size()), batch.inputs.num_turns);
        EXPECT_EQ(sequences.size(), all_sequences.size());
        EXPECT_EQ(turns.size(), all_turns.size());
        for (const auto& [number, members] : sequences) EXPECT_EQ(members.size(), 1u);
        for (const auto& [number, members] : turns) EXPECT_EQ(members.size(), 1u);
      }
    }
}

TEST(Packing, DenominatorsAreTheWholeStepsInEveryMicroBatch) {
  RandomStream random(4);
  for (int trial = 0; trial < 40; ++trial) {
    const SequenceUnit unit = trial % 2 == 0 ? SequenceUnit::Trajectory : SequenceUnit::Response;
    const RandomStep step = random_step(random);
    std::map<std::pair<int, int>, std::pair<double, double>> totals;      // tokens and weight by sequence
    std::map<std::pair<int, int>, std::pair<double, double>*> totals_of;  // by place
    double tokens = 0, weight = 0;
    for (const TrainedToken& token : trained_tokens(step)) {
      const double w = step.credit[token.place.trajectory].weight[token.place.token];
      auto& own = totals[sequence_of(unit, token)];
      own.first += 1;
      own.second += w;
      totals_of[{token.place.trajectory, token.place.token}] = &own;
      tokens += 1;
      weight += w;
    }
    for (const MicroBatch& batch :
         pack(step.all, step.credit, step.indices, {.max_tokens = 30, .sequence = unit, .constant = 7})) {
      EXPECT_EQ(batch.step.tokens, tokens);
      EXPECT_NEAR(batch.step.weight, weight, 1e-9);
      EXPECT_EQ(batch.step.sequences, static_cast<double>(totals.size()));
      EXPECT_EQ(batch.step.constant, 7);
      for (std::size_t t = 0; t < batch.places.size(); ++t) {
        const auto sequence = static_cast<std::size_t>(integer(batch.inputs.sequence_T, t));
        const auto& own = *totals_of.at({batch.places[t].trajectory, batch.places[t].token});
        EXPECT_EQ(batch.step.sequence_tokens[sequence], own.first);
        EXPECT_NEAR(batch.step.sequence_weight[sequence], own.second, 1e-12);
      }
    }
  }
}

TEST(Packing, StaysWithinItsLimitUnlessOneUnitIsLonger) {
  RandomStream random(5);
  for (int trial = 0; trial < 20; ++trial) {
    const RandomStep step = random_step(random);
    for (const auto& [whole, share] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
      std::map<int, int> batches_of;
      for (const MicroBatch& batch : pack(step.all, step.credit, step.indices,
                                          {.max_tokens = 25, .whole_trajectories = whole, .share_prefixes = share})) {
        const std::vector<int>& offsets = batch.plan.offsets;
        const bool single = whole ? batch.inputs.num_sequences == 1 : offsets.size() == 2;
        EXPECT_TRUE(offsets.back() <= 25 || single) << offsets.back();
        std::set<int> held;
        for (const TokenPlace& place : batch.places) held.insert(place.trajectory);
        for (int trajectory : held) ++batches_of[trajectory];
      }
      if (whole) {
        for (const auto& [trajectory, batches] : batches_of) EXPECT_EQ(batches, 1) << trajectory;
      }
    }
  }
}

TEST(Packing, AStepWithoutTrainedTokensHasNoMicroBatches) {
  RandomStream random(6);
  RandomStep step = random_step(random);
  for (Group& group : step.groups)
    for (Tree& tree : group.trees)
      for (Leaf& leaf : tree.leaves) leaf.dropped = true;
  EXPECT_TRUE(pack(step.all, step.credit, step.indices, {}).empty());
  EXPECT_TRUE(split_minibatches(step.all, {.count = 3}).empty());
}

TEST(Packing, ASignalThatOnlySomeTrajectoriesHaveIsABug) {
  RandomStream random(7);
  RandomStep step = random_step(random);
  for (Tree& tree : step.groups[0].trees) tree.columns.clear(Column::LogProbOld);
  for (Group& group : step.groups)
    for (Tree& tree : group.trees)
      for (Leaf& leaf : tree.leaves) {
        leaf.dropped = false;
        leaf.outcome = Outcome::Finished;
      }
  EXPECT_THROW(pack(step.all, step.credit, step.indices, {.max_tokens = 100000}), CheckError);
}

/// Every number of a micro-batch, by name of its tensor.
std::map<std::string, at::Tensor> tensors_of(const MicroBatch& batch) {
  const LossInputs& in = batch.inputs;
  std::map<std::string, at::Tensor> tensors{{"tokens", batch.tokens_R},
                                            {"positions", batch.positions_R},
                                            {"rows", batch.rows_T},
                                            {"targets", batch.targets_T},
                                            {"advantage", in.advantage_T},
                                            {"weight", in.weight_T},
                                            {"clip_scale", in.clip_scale_T},
                                            {"value_target", in.value_target_T},
                                            {"old", in.logprob_old_T},
                                            {"rollout", in.logprob_rollout_T},
                                            {"reference", in.logprob_reference_T},
                                            {"value", in.value_old_T},
                                            {"turn", in.turn_T},
                                            {"sequence", in.sequence_T}};
  const Denominators& d = batch.step;
  std::vector<double> step{d.tokens, d.weight, d.sequences, d.constant};
  step.insert(step.end(), d.sequence_weight.begin(), d.sequence_weight.end());
  step.insert(step.end(), d.sequence_tokens.begin(), d.sequence_tokens.end());
  tensors["step"] = at::tensor(at::ArrayRef<double>(step), at::kDouble);
  return tensors;
}

TEST(Packing, IsBitwiseEqualWhenAbsentMembersAreRemoved) {
  RandomStream random(9);
  int absent = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const RandomStep with = random_step(random);
    RandomStep without{.groups = testing::without_absent_members(with.groups), .all = {}, .credit = {}, .indices = {}};
    without.all = trajectories(without.groups);
    for (std::size_t i = 0; i < with.all.size(); ++i)
      if (with.all[i].leaf().is_included()) without.credit.push_back(with.credit[i]);
    without.indices.resize(without.all.size());
    std::iota(without.indices.begin(), without.indices.end(), 0);
    absent += testing::absent_members(with.groups);

    const PackingOptions options{
        .max_tokens = 50, .whole_trajectories = trial % 2 == 0, .constant = 9, .entropy_scale = 0.2};
    const auto a = pack(with.all, with.credit, with.indices, options);
    const auto b = pack(without.all, without.credit, without.indices, options);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t m = 0; m < a.size(); ++m) {
      EXPECT_EQ(a[m].plan.offsets, b[m].plan.offsets);
      const auto tensors = tensors_of(a[m]), others = tensors_of(b[m]);
      for (const auto& [name, tensor] : tensors) {
        const at::Tensor& other = others.at(name);
        // Targets of a critic may be NaN: compared as bits.
        EXPECT_TRUE(at::equal(tensor.view(at::kLong), other.view(at::kLong))) << name;
      }
    }
  }
  EXPECT_GT(absent, 40);
}

/// Gradients of every weight after all micro-batches of the step.
std::vector<at::Tensor> gradients(Model model, const RandomStep& step, const ObjectiveOptions& objective,
                                  const PackingOptions& packing) {
  model.requires_grad(true);
  for (const MicroBatch& batch : pack(step.all, step.credit, step.indices, packing)) {
    const at::Tensor hidden_RH = model.hidden(batch.tokens_R, batch.positions_R, batch.plan);
    const TokenStatistics statistics =
        token_statistics(hidden_RH.index_select(0, batch.rows_T), model.head(), batch.targets_T, {});
    LossInputs inputs = batch.inputs;
    inputs.logprob_T = statistics.logprob_T;
    inputs.entropy_T = statistics.entropy_T;
    policy_loss(objective, inputs, batch.step).total.backward();
  }
  std::vector<at::Tensor> all;
  for (const NamedTensor& named : model.parameters()) all.push_back(named.tensor.grad());
  return all;
}

TEST(Packing, AnyPackingGivesTheSameGradientOfARealModel) {
  RandomStream random(8);
  const RandomStep step = random_step(random);
  const Model model({.vocab_size = 100,
                     .hidden_size = 16,
                     .intermediate_size = 24,
                     .num_layers = 2,
                     .num_heads = 2,
                     .num_kv_heads = 1,
                     .head_dim = 8},
                    1, at::TensorOptions(at::kDouble), 0.3);
  for (const auto& [level, unit] : {std::pair(RatioLevel::Token, SequenceUnit::Trajectory),
                                    {RatioLevel::Turn, SequenceUnit::Trajectory},
                                    {RatioLevel::Sequence, SequenceUnit::Trajectory},
                                    {RatioLevel::Sequence, SequenceUnit::Response}})
    for (const Reduction reduction : {Reduction::TokenMean, Reduction::SequenceMeanTokenMean}) {
      const ObjectiveOptions objective{
          .ratio = level, .sequence = unit, .reduction = reduction, .kl_coefficient = 0.1, .entropy_coefficient = 0.1};
      const bool whole = level == RatioLevel::Sequence && unit == SequenceUnit::Trajectory;
      const auto one = gradients(model.clone(), step, objective, {.max_tokens = 1000000, .sequence = unit});
      const auto many =
          gradients(model.clone(), step, objective, {.max_tokens = 20, .sequence = unit, .whole_trajectories = whole});
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::allclose(one[i], many[i], 1e-9, 1e-12)) << i;
      for (const int max_tokens : {1000000, 30}) {
        const auto shared = gradients(
            model.clone(), step, objective,
            {.max_tokens = max_tokens, .sequence = unit, .whole_trajectories = whole, .share_prefixes = true});
        for (std::size_t i = 0; i < one.size(); ++i)
          EXPECT_TRUE(at::allclose(one[i], shared[i], 1e-9, 1e-12)) << i << " with prefixes shared";
      }
    }
}

TEST(Packing, HasEveryDistinctPrefixOnceIfPrefixesAreShared) {
  // Four answers of two tokens to a prompt of five, the second of which branches off behind the first's first token.
  Group group{.uid = "g"};
  for (int answer = 0; answer < 4; ++answer) {
    Tree tree;
    const auto first = static_cast<TokenId>(answer == 1 ? 10 : 10 + answer), second = static_cast<TokenId>(20 + answer);
    tree.turns.push_back({.tokens = {1, 2, 3, 4, 5, first, second}, .sampled_begin = 5, .sampled_end = 7});
    tree.leaves.push_back({.turn = 0, .sibling = answer});
    group.trees.push_back(std::move(tree));
  }
  const std::vector<Group> groups{group};
  const auto all = trajectories(groups);
  CreditTable credit;
  for (const Trajectory& view : all) {
    const auto tokens = static_cast<std::size_t>(view.num_tokens());
    credit.push_back({.advantage = std::vector<double>(tokens, 1.0),
                      .weight = std::vector<double>(tokens, 1.0),
                      .clip_scale = std::vector<double>(tokens, 1.0),
                      .value_target = std::vector<double>(tokens, std::nan(""))});
  }
  const std::vector<int> step{0, 1, 2, 3};
  const auto rows = [&](const PackingOptions& options) {
    std::int64_t sum = 0;
    for (const MicroBatch& batch : pack(all, credit, step, options)) sum += batch.tokens_R.numel();
    return sum;
  };
  EXPECT_EQ(rows({.max_tokens = 100}), 4 * 6);
  EXPECT_EQ(rows({.max_tokens = 100, .share_prefixes = true}), 5 + 3) << "the last sampled token is no row";
  EXPECT_EQ(rows({.max_tokens = 7, .share_prefixes = true}), 7 + 6) << "the prompt once in each micro-batch";
}

}  // namespace
}  // namespace carnot
