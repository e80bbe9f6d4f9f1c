#include "carnot/core/rollout/continuations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "carnot/core/base/statistics.h"
#include "carnot/core/rollout/measured_advantage.h"
#include "carnot/worlds/frozen_lake/game.h"
#include "testing/scripted_rollout.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

/// A decision with few optimal answers in each of `depth` states: one leads to the next state, and behind the last to
/// reward 1; any other ends the episode without reward (AEnt's sparse process, for a policy of tokens).
struct SparseWorld {
  int depth = 2;
  int one_in = 3;  ///< answers are optimal
  int response_tokens = 1;

  bool optimal(int state, const std::string& answer) const {
    return derive_seed(static_cast<std::uint64_t>(state), answer) % static_cast<std::uint64_t>(one_in) == 0;
  }
};

class SparseEnvironment : public Environment {
 public:
  explicit SparseEnvironment(const SparseWorld& world) : world_(world) {}

  Protocol protocol() const override {
    return {.max_turns = world_.depth, .max_response_tokens = world_.response_tokens};
  }
  Opening open() override { return {.user = "decide"}; }
  Reply step(const PolicyResponse& response) override {
    const bool right = world_.optimal(state_++, response.text);
    if (right && state_ < world_.depth) return {.text = "next"};
    return {.reward = right ? 1.0 : 0.0, .penalty = -0.5, .done = true, .success = right};
  }
  Branching branching() const override { return Branching::Replayed; }

 private:
  SparseWorld world_;
  int state_ = 0;
};

/// The exact value of a context, by enumeration of all responses: probabilities of the hash policy, recursion over
/// states.
class ExactValues {
 public:
  explicit ExactValues(const SparseWorld& world) : world_(world), model_(small_tokenizer().vocab_size(), 1) {}

  double value(std::vector<TokenId> context, int state, std::vector<TokenId> begun = {}) const {
    std::vector<TokenId> tokens = context;
    tokens.insert(tokens.end(), begun.begin(), begun.end());
    const std::vector<double> logits = model_.logits_behind(tokens);
    double sum = 0, value = 0;
    for (const double logit : logits) sum += std::exp(logit);
    for (std::size_t v = 0; v < logits.size(); ++v) {
      std::vector<TokenId> said = begun;
      said.push_back(static_cast<TokenId>(v));
      const bool closed = is_stop(said.back());
      const bool ends = closed || std::ssize(said) == world_.response_tokens;
      value +=
          std::exp(logits[v]) / sum * (ends ? after(context, state, said, closed) : this->value(context, state, said));
    }
    return value;
  }

 private:
  static bool is_stop(TokenId token) {
    for (const TokenId stop : small_chat().stop_tokens())
      if (stop == token) return true;
    return false;
  }

  double after(const std::vector<TokenId>& context, int state, const std::vector<TokenId>& said, bool closed) const {
    const std::span<const TokenId> spoken(said.data(), said.size() - (closed ? 1 : 0));
    if (!world_.optimal(state, small_tokenizer().decode(spoken))) return -0.5;
    if (state + 1 == world_.depth) return 1 - 0.5;
    std::vector<TokenId> next = context;
    next.insert(next.end(), said.begin(), said.end());
    const std::vector<Message> reply{{.role = "user", .content = "next"}};
    const auto rendered = small_chat().render_reply(reply, "", closed);
    next.insert(next.end(), rendered.tokens.begin(), rendered.tokens.end());
    return value(next, state + 1);
  }

  SparseWorld world_;
  HashRunner model_;
};

std::vector<RolloutTask> sparse_tasks(const SparseWorld& world, int count) {
  std::vector<RolloutTask> tasks;
  for (int i = 0; i < count; ++i)
    tasks.push_back({.uid = "sparse-" + std::to_string(i), .task_index = i, .make = [world] {
                       return std::make_unique<SparseEnvironment>(world);
                     }});
  return tasks;
}

struct States {
  std::vector<RolloutTask> tasks{};
  std::vector<double> exact{};
};

ContinuedStates continued(const std::vector<RolloutTask>& states, int samples, std::uint64_t seed = 11) {
  HashRunner model(small_tokenizer().vocab_size(), 4000);
  Engine engine(model, {.max_batch_tokens = 512});
  const RolloutOptions options{.group_size = samples};
  auto out = continue_from(engine, small_chat(), states, options, {.seed = seed});
  EXPECT_EQ(engine.free_blocks(), 4000) << "every sequence was released";
  EXPECT_THAT(out.failures, ::testing::IsEmpty());
  return out;
}

/// Estimates are within their intervals as often as 95 % intervals promise, and their errors, in standard errors, have
/// mean 0. Scores are `lowest` or that plus 1.
void expect_unbiased(const States& states, const ContinuedStates& found, int samples, double lowest) {
  ASSERT_EQ(found.states.size(), states.exact.size());
  double covered = 0, errors = 0, variance = 0;
  for (std::size_t s = 0; s < states.exact.size(); ++s) {
    double successes = 0;
    ASSERT_EQ(std::ssize(found.states[s].scores), samples);
    for (const auto& score : found.states[s].scores) successes += score.value() - lowest;
    const double exact = states.exact[s] - lowest;
    const Interval interval = wilson_interval(successes, samples);
    covered += interval.low <= exact && exact <= interval.high ? 1 : 0;
    errors += successes / samples - exact;
    variance += exact * (1 - exact) / samples;
  }
  EXPECT_GE(covered / static_cast<double>(states.exact.size()), 0.88);
  EXPECT_LT(std::abs(errors), 2.5 * std::sqrt(variance)) << "the sum of all errors";
}

TEST(Continuations, EstimatesOfTurnBoundariesAreUnbiasedInTheSparseProcess) {
  const SparseWorld world{.depth = 2, .one_in = 4};
  const ExactValues exact(world);
  const Rollout recorded = roll_out_scripted(sparse_tasks(world, 1), with_budget(100));
  States states;
  for (const Trajectory& one : trajectories(recorded.groups))
    for (int k = states.tasks.empty() ? 0 : 1; k < one.num_turns(); ++k) {
      RolloutTask task = sparse_tasks(world, 1)[0];
      task.given = start_of(one, k);
      states.exact.push_back(exact.value(task.given->context, k));
      states.tasks.push_back(std::move(task));
    }
  ASSERT_GT(states.tasks.size(), 20u);
  expect_unbiased(states, continued(states.tasks, 64), 64, -0.5);
}

TEST(Continuations, EstimatesInsideResponsesAreUnbiasedInTheSparseProcess) {
  const SparseWorld world{.depth = 2, .one_in = 3, .response_tokens = 2};
  const ExactValues exact(world);
  const Rollout recorded = roll_out_scripted(sparse_tasks(world, 1), with_budget(120));
  States states;
  for (const Trajectory& one : trajectories(recorded.groups)) {
    if (one.num_turns() < 2 || one.turn(1).num_sampled() < 2) continue;
    RolloutTask task = sparse_tasks(world, 1)[0];
    task.given = start_of(one, 1, 1);
    states.exact.push_back(exact.value(task.given->context, 1, task.given->begun));
    states.tasks.push_back(std::move(task));
  }
  ASSERT_GT(states.tasks.size(), 20u);
  expect_unbiased(states, continued(states.tasks, 64), 64, -0.5);
}

/// A policy that looks at nothing: the same logits after every context.
class ConstantRunner : public HashRunner {
 public:
  using HashRunner::HashRunner;
  LogitRows logits(const at::Tensor& hidden_BH, std::span<const float>) override {
    const at::Tensor logits_BV = at::empty({hidden_BH.size(0), vocab_size()}, at::kFloat);
    for (std::int64_t i = 0; i < logits_BV.numel(); ++i)
      logits_BV.data_ptr<float>()[i] = logit(static_cast<int>(i % vocab_size()));
    return {.logits_BV = logits_BV};
  }
  static float logit(int token) { return hash_logit(7, token); }
};

/// What an environment reads of a response of one token.
std::string spoken(TokenId token) {
  for (const TokenId stop : small_chat().stop_tokens())
    if (stop == token) return "";
  return small_tokenizer().decode(std::vector<TokenId>{token});
}

/// FrozenLake whose moves are said in one token.
class LakeEnvironment : public Environment {
 public:
  static constexpr int kTurns = 6;
  explicit LakeEnvironment(std::uint64_t seed) : lake({}, seed) {}

  static std::size_t action_of(const std::string& said) { return derive_seed(3, said) % kFrozenLakeActions.size(); }

  Protocol protocol() const override { return {.max_turns = kTurns, .max_response_tokens = 1}; }
  Opening open() override { return {.user = "move"}; }
  Reply step(const PolicyResponse& response) override {
    const GameStep step = lake.step(kFrozenLakeActions[action_of(response.text)]);
    done = step.done || ++turns == kTurns;
    return {.text = done ? "" : "moved", .reward = step.reward.value, .done = done, .success = step.success};
  }
  Branching branching() const override { return Branching::Replayed; }
  void redraw(std::uint64_t key) override { lake.redraw(key); }

  FrozenLake lake;
  int turns = 0;
  bool done = false;
};

/// The exact chance to reach the goal from each cell within some moves, by dynamic programming over moves and slips.
std::vector<double> lake_values(const FrozenLake& lake, int moves) {
  std::array<double, kFrozenLakeActions.size()> chances{};
  double sum = 0;
  for (int token = 0; token < small_tokenizer().vocab_size(); ++token) {
    const double mass = std::exp(ConstantRunner::logit(token));
    chances[LakeEnvironment::action_of(spoken(token))] += mass;
    sum += mass;
  }
  const FrozenLakeMap& map = lake.map();
  std::vector<double> values(map.cells.size(), 0.0);
  for (int m = 0; m < moves; ++m) {
    std::vector<double> before(values.size(), 0.0);
    for (std::size_t cell = 0; cell < values.size(); ++cell)
      for (std::size_t action = 0; action < chances.size(); ++action) {
        const auto ends = frozen_lake_moves(lake.options(), map.size, static_cast<int>(cell), static_cast<int>(action));
        for (std::size_t i = 0; i < ends.ends.size(); ++i) {
          const auto end = static_cast<std::size_t>(ends.ends[i]);
          const double value = map.cells[end] == 'G' ? 1 : map.cells[end] == 'H' ? 0 : values[end];
          before[cell] += chances[action] / sum * ends.chances[i] * value;
        }
      }
    values = before;
  }
  return values;
}

TEST(Continuations, EstimatesAreUnbiasedOnFrozenLakeWithNewSlips) {
  constexpr int kSamples = 64;
  std::vector<RolloutTask> lakes;
  for (int i = 0; i < 12; ++i)
    lakes.push_back({.uid = "lake-" + std::to_string(i), .task_index = i, .make = [i] {
                       return std::make_unique<LakeEnvironment>(static_cast<std::uint64_t>(i));
                     }});
  ConstantRunner model(small_tokenizer().vocab_size(), 4000);
  Engine engine(model, {.max_batch_tokens = 512});
  const auto policy = independent();
  const Rollout recorded = roll_out(engine, small_chat(), *policy, lakes, {.group_size = 4}, kRolloutKey);
  States states;
  for (const Trajectory& one : trajectories(recorded.groups)) {
    const auto lake = static_cast<std::uint64_t>(one.group->task_index);
    LakeEnvironment replayed(lake);
    for (int k = 0; k < one.num_turns(); ++k) {
      RolloutTask task = lakes[lake];
      task.given = start_of(one, k);
      const auto values = lake_values(replayed.lake, LakeEnvironment::kTurns - k);
      states.exact.push_back(values[static_cast<std::size_t>(replayed.lake.player())]);
      states.tasks.push_back(std::move(task));
      replayed.step(spoken(one.tokens()[static_cast<std::size_t>(one.sampled_begin(k))]));
    }
  }
  ASSERT_GT(states.tasks.size(), 100u);
  const ContinuedStates found =
      continue_from(engine, small_chat(), states.tasks, {.group_size = kSamples}, {.seed = 2});
  EXPECT_THAT(found.failures, ::testing::IsEmpty());
  expect_unbiased(states, found, kSamples, 0);
}

// Draws are keyed by sibling, turn and position: what a sibling samples from its own beginning is its own end.
TEST(Continuations, ASiblingContinuesItsOwnTrajectoryAsItWent) {
  for (const ReplyForm form : {ReplyForm::UserMessage, ReplyForm::Inline}) {
    for (const Branching branching : {Branching::Cloned, Branching::Replayed}) {
      const auto tasks = scripted_tasks(1, {.form = form, .branching = branching});
      const Rollout recorded = roll_out_scripted(tasks, with_budget(4));
      for (const Trajectory& one : trajectories(recorded.groups)) {
        for (const auto& [turn, begun] : {std::pair{0, 0}, std::pair{0, 1}, std::pair{2, 0}, std::pair{3, 2}}) {
          if (begun >= one.turn(turn).num_sampled()) continue;
          std::vector<RolloutTask> from = tasks;
          from[0].given = start_of(one, turn, begun);
          const Rollout again = roll_out_scripted(from, with_budget(4));
          const Tree& same = again.groups[0].trees[static_cast<std::size_t>(one.leaf().sibling)];
          ASSERT_EQ(same.turns.size(), one.tree->turns.size());
          for (std::size_t k = 0; k < same.turns.size(); ++k)
            EXPECT_EQ(same.turns[k].tokens, one.tree->turns[k].tokens);
          EXPECT_EQ(same.leaves[0].score, one.leaf().score);
          EXPECT_EQ(same.leaves[0].outcome, one.leaf().outcome);
        }
      }
    }
  }
}

TEST(Continuations, WhatIsGivenIsComputedOnceAndSampledTokensAreCountedBehindIt) {
  const auto tasks = scripted_tasks(1, {});
  const Rollout recorded = roll_out_scripted(tasks, with_budget(1));
  const Trajectory one = trajectories(recorded.groups).front();
  std::vector<RolloutTask> from = tasks;
  from[0].given = start_of(one, 3);
  const ContinuedStates found = continued(from, 8);
  EXPECT_EQ(found.states[0].sampled_tokens, found.metrics.sampled_tokens);
  EXPECT_EQ(found.metrics.computed_rows, one.sampled_begin(3) - 1 + found.metrics.sampled_tokens);
}

TEST(Continuations, AnEnvironmentThatAnswersOtherwiseHasNoValues) {
  const auto tasks = scripted_tasks(1, {});
  const Rollout recorded = roll_out_scripted(tasks, with_budget(1));
  const Trajectory one = trajectories(recorded.groups).front();
  for (const bool early : {false, true}) {
    std::vector<RolloutTask> from = scripted_tasks(1, {.change = [early](int turn, Reply& reply) {
                                                     if (turn == 2) reply.text += " else";
                                                     if (turn == 2) reply.done = early;
                                                   }});
    from[0].given = start_of(one, 3);
    HashRunner model(small_tokenizer().vocab_size(), 500);
    Engine engine(model, {});
    const auto found = continue_from(engine, small_chat(), from, {.group_size = 3}, {.seed = 1});
    EXPECT_THAT(found.states[0].scores, ::testing::Each(std::nullopt));
    ASSERT_EQ(found.failures.size(), 3u);
    EXPECT_THAT(found.failures[0], ::testing::HasSubstr("otherwise than it did"));
    EXPECT_EQ(engine.free_blocks(), 500);
  }
}

std::vector<double> advantages_of(std::vector<Group> groups, const std::vector<RolloutTask>& tasks, int samples) {
  HashRunner model(small_tokenizer().vocab_size(), 4000);
  Engine engine(model, {.max_batch_tokens = 512});
  const auto failures = measure_advantages(
      {.engine = engine,
       .chat = small_chat(),
       .options = {.group_size = samples},
       .seed = 5,
       .task = [&](const Group& group) { return tasks[static_cast<std::size_t>(group.task_index)]; }},
      groups);
  EXPECT_THAT(failures, ::testing::IsEmpty());
  std::vector<double> first_tokens;
  for (const Trajectory& one : trajectories(groups))
    for (int k = 0; k < one.num_turns(); ++k)
      first_tokens.push_back(one.column(Column::AdvantageOracle)[static_cast<std::size_t>(one.sampled_begin(k))]);
  return first_tokens;
}

TEST(MeasuredAdvantages, AreTheExactValueAfterATurnMinusTheExactValueBeforeIt) {
  const SparseWorld world{.depth = 2, .one_in = 4};
  const ExactValues exact(world);
  const auto tasks = sparse_tasks(world, 2);
  const Rollout recorded = roll_out_scripted(tasks, with_budget(40));
  const std::vector<double> measured = advantages_of(recorded.groups, tasks, 400);
  std::size_t next = 0;
  double error = 0;
  for (const Trajectory& one : trajectories(recorded.groups)) {
    double sum = 0;
    const double prompt = exact.value(start_of(one, 0).context, 0);
    for (int k = 0; k < one.num_turns(); ++k) {
      const double after =
          k + 1 < one.num_turns() ? exact.value(start_of(one, k + 1).context, k + 1) : one.penalised_score();
      const double advantage = after - exact.value(start_of(one, k).context, k);
      EXPECT_NEAR(measured[next], advantage, 0.16) << one.leaf().trajectory_id << " turn " << k;
      error += measured[next] - advantage;
      sum += measured[next++];
    }
    EXPECT_NEAR(sum, one.penalised_score() - prompt, 0.1) << "they telescope";
  }
  EXPECT_LT(std::abs(error) / static_cast<double>(next), 0.03) << "no bias";
}

TEST(MeasuredAdvantages, OfAGroupDoNotDependOnOtherGroups) {
  const SparseWorld world{.depth = 2, .one_in = 3};
  const auto tasks = sparse_tasks(world, 3);
  const Rollout recorded = roll_out_scripted(tasks, with_budget(6));
  std::vector<double> apart;
  for (const Group& group : recorded.groups) {
    const auto own = advantages_of({group}, tasks, 8);
    apart.insert(apart.end(), own.begin(), own.end());
  }
  EXPECT_EQ(advantages_of(recorded.groups, tasks, 8), apart);
}

}  // namespace
}  // namespace carnot
