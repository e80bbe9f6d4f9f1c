// Weights that are swapped while trajectories are sampled (RolloutEvents::newer_weights).
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "carnot/core/branch/branch.h"
#include "carnot/core/branch/tree_expand.h"
#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/rollout/measure.h"
#include "testing/scripted_rollout.h"
#include "testing/small_model.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

constexpr int kOlder = 9, kNewer = 12;

void put_in_place(const Model& weights, Model& into) {
  const at::NoGradGuard no_grad;
  const auto from = weights.parameters(), to = into.parameters();
  for (std::size_t i = 0; i < from.size(); ++i) at::Tensor(to[i].tensor).copy_(from[i].tensor);
}

Model older_model(const std::string& family) { return testing::small_model({.family = family}); }

Model newer_model(const std::string& family) {
  Model model = older_model(family);
  const at::NoGradGuard no_grad;
  for (const NamedTensor& named : model.parameters()) at::Tensor(named.tensor).mul_(1.1);
  return model;
}

/// Rolls out, and swaps the weights after this many engine steps.
Rollout swapped_after(int steps, const std::string& family, const BranchPolicy& policy) {
  Model model = older_model(family);
  const Model newer = newer_model(family);
  DecoderRunner runner(model, {.blocks = 400, .states = 10});
  Engine engine(runner, {.max_batch_tokens = 60, .drawable_tokens = small_tokenizer().vocab_size()});
  const int free = engine.free_blocks();
  int asked = 0;
  const RolloutEvents events{.newer_weights = [&]() -> std::optional<int> {
    if (++asked != steps) return std::nullopt;
    put_in_place(newer, model);
    return kNewer;
  }};
  const RolloutOptions options{.group_size = 4};
  Rollout out = roll_out(engine, small_chat(), policy, scripted_tasks(2, {}), options, kRolloutKey, events);
  EXPECT_EQ(engine.free_blocks(), free);
  EXPECT_EQ(out.metrics.weight_swaps, 1);
  return out;
}

/// In each trajectory, each token's log-probability equals that of one of the two weights bit for bit, and none of the
/// older weights' follows one of the newer's. Each turn has the version of its first token. Returns the versions of the
/// turns.
std::set<int> checked_versions(const Rollout& rollout, const std::string& family) {
  std::vector<Group> by_older = rollout.groups, by_newer = rollout.groups;
  measure_old_policy(older_model(family), by_older, {});
  measure_old_policy(newer_model(family), by_newer, {});
  std::set<int> versions;
  const auto sampled = trajectories(rollout.groups), older = trajectories(by_older), newer = trajectories(by_newer);
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    if (!sampled[i].leaf().is_included()) continue;
    const auto found = sampled[i].column(Column::LogProbRollout), before = older[i].column(Column::LogProbOld),
               after = newer[i].column(Column::LogProbOld);
    bool is_newer = false;
    for (int k = 0; k < sampled[i].num_turns(); ++k) {
      for (int t = sampled[i].sampled_begin(k); t < sampled[i].sampled_end(k); ++t) {
        const auto at = static_cast<std::size_t>(t);
        is_newer = is_newer || found[at] != before[at];
        EXPECT_EQ(found[at], is_newer ? after[at] : before[at]) << "turn " << k << " token " << t;
        if (t > sampled[i].sampled_begin(k)) continue;
        EXPECT_EQ(sampled[i].turn(k).policy_version, is_newer ? kNewer : kOlder);
        versions.insert(sampled[i].turn(k).policy_version);
      }
    }
  }
  return versions;
}

class InFlightUpdates : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, InFlightUpdates, ::testing::Values("qwen2", "qwen3_5_text"));

TEST_P(InFlightUpdates, GiveEachTokenTheLogProbabilityOfTheWeightsThatSampledIt) {
  for (const int steps : {1, 6, 15, 40}) {
    const Rollout rollout = swapped_after(steps, GetParam(), *independent());
    expect_sound(rollout);
    const std::set<int> versions = checked_versions(rollout, GetParam());
    EXPECT_TRUE(versions.contains(kNewer)) << "after " << steps;
    EXPECT_TRUE(versions.contains(kOlder) || steps < 15) << "after " << steps;
  }
}

TEST_P(InFlightUpdates, KeepTreesValid) {
  const auto policy = tree_expand({.trees = 2, .nodes = 1, .rounds = 1});
  for (const int steps : {4, 20, 60}) {
    const Rollout rollout = swapped_after(steps, GetParam(), *policy);
    expect_sound(rollout);
    checked_versions(rollout, GetParam());
  }
}

}  // namespace
}  // namespace carnot
