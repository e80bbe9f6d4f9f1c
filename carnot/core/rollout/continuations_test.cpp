#include "carnot/core/rollout/continuations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/statistics.h"
#include "carnot/core/rollout/measured_advantage.h"
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
/// mean 0.
void expect_unbiased(const States& states, int samples) {
  const ContinuedStates found = continued(states.tasks, samples);
  ASSERT_EQ(found.states.size(), states.exact.size());
  double covered = 0, errors = 0, variance = 0;
  for (std::size_t s = 0; s < states.exact.size(); ++s) {
    double successes = 0;
    ASSERT_EQ(std::ssize(found.states[s].scores), samples);
    for (const auto& score : found.states[s].scores) successes += score.value() + 0.5;
    const double exact = states.exact[s] + 0.5;
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
  expect_unbiased(states, 64);
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
  expect_unbiased(states, 64);
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
