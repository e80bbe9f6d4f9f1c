// Every recorded case of published group filters, reward shaping, branching and adaptive coefficients.
#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/core/branch/balanced_branch.h"
#include "carnot/core/branch/branch.h"
#include "carnot/core/branch/entropy_branch.h"
#include "carnot/core/credit/filter.h"
#include "carnot/core/credit/reward.h"
#include "carnot/core/objective/adaptive_coefficient.h"
#include "recorded_cases.h"

namespace carnot {
namespace {

using testing::expect_close;
using testing::for_recorded;

/// One group per list of scores, one chain of one token per score.
std::vector<Group> groups_of(const Json& scores) {
  std::vector<Group> groups(scores.size());
  for (std::size_t g = 0; g < scores.size(); ++g)
    for (const Json& score : scores[g]) {
      Tree tree;
      tree.turns.push_back({.tokens = {0}, .sampled_end = 1, .spans = {{SpanKind::Action, 0, 1}}});
      tree.leaves.push_back({.turn = 0, .score = score.get<double>()});
      groups[g].trees.push_back(tree);
    }
  return groups;
}

std::vector<int> kept(const GroupFilter& filter, const std::vector<Group>& groups) {
  const std::vector<bool> keep = filter.keep(groups);
  std::vector<int> numbers;
  for (std::size_t g = 0; g < keep.size(); ++g)
    if (keep[g]) numbers.push_back(static_cast<int>(g));
  return numbers;
}

TEST(PublishedFilters, DropZeroVariance) {
  int differing = 0;
  for_recorded("dapo", "dapo_group_filter", 44, [&](const Json& recorded) {
    const Json& expected = recorded["expected"];
    EXPECT_EQ(kept(drop_zero_variance(0), groups_of(recorded["metric"])),
              expected["kept_by_exact_equality"].get<std::vector<int>>());
    differing += expected["kept_groups"] != expected["kept_by_exact_equality"] ? 1 : 0;
  });
  // The source keeps equal rewards whose rounded deviation is not 0; docs/differences_to_published_code.md.
  EXPECT_EQ(differing, 13);
}

TEST(PublishedFilters, KeepMostVaried) {
  for_recorded("ragen_filter", "ragen_variance_filter", 119, [](const Json& recorded) {
    const double share = recorded["options"]["ratio"];
    const bool reversed = recorded["options"]["type"] == "std_rev";
    const GroupFilter filter = reversed ? keep_least_varied(share) : keep_most_varied(share);
    const std::vector<int> numbers = kept(filter, groups_of(recorded["scores"]));
    EXPECT_EQ(numbers.size(), recorded["expected"]["n_kept"].get<std::size_t>());
    if (recorded["expected"]["tie_at_boundary"]) return;
    EXPECT_EQ(numbers, recorded["expected"]["kept_groups"].get<std::vector<int>>());
  });
}

TEST(PublishedRewards, OverlongPenalty) {
  for_recorded("dapo", "overlong_penalty", 22, [](const Json& recorded) {
    const Json& options = recorded["options"];
    for (std::size_t i = 0; i < recorded["lengths"].size(); ++i)
      expect_close(
          overlong_loss(recorded["lengths"][i], options["max_response_length"], options["buffer"], options["factor"]),
          recorded["expected"]["penalty"][i], "length " + std::to_string(i));
  });
}

RewardScaling scaling_of(const Json& recorded) {
  const std::string method = recorded["options"]["method"];
  if (method == "mean") return RewardScaling::Mean;
  if (method == "mean_std") return RewardScaling::MeanStd;
  return method == "asym_clip" ? RewardScaling::AsymmetricClip : RewardScaling::Identity;
}

/// The recorded trajectories in their groups, or each in a separate group.
void expect_normalised(const Json& recorded, RewardGrouping grouping, bool alone) {
  std::vector<Group> groups;
  std::vector<std::pair<int, int>> places;
  for (const Json& one : recorded["trajectories_scores"]) {
    const auto g = alone ? places.size() : one["group"].get<std::size_t>();
    if (groups.size() <= g) groups.resize(g + 1);
    Tree tree;
    tree.turns.push_back(
        {.tokens = {0}, .sampled_end = 1, .spans = {{SpanKind::Action, 0, 1}}, .penalty = one["penalty"]});
    tree.leaves.push_back({.turn = 0, .score = one["reward"]});
    groups[g].trees.push_back(tree);
    places.emplace_back(g, groups[g].trees.size() - 1);
  }
  const auto all = trajectories(groups);
  const CreditTable table = run_credit(std::vector{normalise_rewards(grouping, scaling_of(recorded))}, all);
  for (std::size_t i = 0; i < places.size(); ++i)
    for (std::size_t n = 0; n < all.size(); ++n)
      if (std::pair(all[n].group_index, all[n].tree_index) == places[i])
        expect_close(table[n].total_reward(), recorded["expected"]["score"][i], "trajectory " + std::to_string(i));
}

TEST(PublishedRewards, Normalisation) {
  int over_the_batch = 0;
  for_recorded("ragen_filter", "ragen_reward_normalisation", 48, [&](const Json& recorded) {
    const bool batch = recorded["options"]["grouping"] == "batch";
    expect_normalised(recorded, batch ? RewardGrouping::Batch : RewardGrouping::Group, false);
    if (!batch) return;
    SCOPED_TRACE("each in a separate group, which must not affect the batch's statistics");
    expect_normalised(recorded, RewardGrouping::Batch, true);
    ++over_the_batch;
  });
  EXPECT_GT(over_the_batch, 5);
}

TEST(PublishedBranching, TurnEntropy) {
  for_recorded("branching", "branch_entropy", 26, [](const Json& recorded) {
    const auto candidates = recorded["candidate_logprobs"].get<std::vector<std::vector<double>>>();
    expect_close(
        turn_entropy_of_candidates(candidates, recorded["options"]["max_tokens"], recorded["options"]["vocabulary"]),
        recorded["expected"]["entropy"], "entropy");
  });
}

TEST(PublishedBranching, Decisions) {
  for_recorded("branching", "branch_decision", 32, [](const Json& recorded) {
    const Json& options = recorded["options"];
    const auto arpo = entropy_branch({.base = options["p0"], .weight = options["entropy_weight"]});
    BalancedBranchOptions published = published_balanced_branch();
    published.base = options["p0"];
    published.weight = options["entropy_weight"];
    published.penalty = options["penalty_slope"];
    const auto aepo = balanced_branch(published);
    for (std::size_t i = 0; i < recorded["draws"].size(); ++i) {
      const Json& draw = recorded["draws"][i];
      const BranchContext at{.turn_entropy = draw["h_now"],
                             .initial_entropy = draw["h_init"],
                             .trajectories = 1,
                             .budget = 2,
                             .consecutive = draw["consecutive"],
                             .uniform = draw["u"]};
      EXPECT_EQ(arpo->branch_here(at), recorded["expected"]["arpo_branch"][i].get<bool>()) << "draw " << i;
      EXPECT_EQ(aepo->branch_here(at), recorded["expected"]["aepo_branch"][i].get<bool>()) << "draw " << i;
    }
  });
}

TEST(PublishedBranching, Budget) {
  for_recorded("branching", "aepo_budget", 28, [](const Json& recorded) {
    const EntropyProbe probe{.root = recorded["h_root"], .tool_calls = recorded["h_steps"].get<std::vector<double>>()};
    EXPECT_EQ(balanced_budget(recorded["options"]["n"], probe, recorded["options"]["beta"], BalancedForm::Code),
              recorded["expected"]["initial_rollouts"].get<int>());
  });
}

TEST(PublishedCoefficients, Entropy) {
  for_recorded("aent_coeff", "aent_adaptive_coefficient", 21, [](const Json& recorded) {
    const Json& options = recorded["options"];
    const AdaptiveEntropyOptions adaptive{.enabled = true,
                                          .low = options["entropy_low"],
                                          .high = options["entropy_high"],
                                          .rate = options["coeff_lr"],
                                          .least = options["box_low"],
                                          .most = options["box_high"],
                                          .warmup = options["warmup_steps"]};
    EntropyCoefficient state{.coefficient = options["initial"], .step = options["first_global_step"]};
    for (std::size_t i = 0; i < recorded["entropy"].size(); ++i) {
      state.update(adaptive, recorded["entropy"][i]);
      expect_close(state.coefficient, recorded["expected"]["coef_after_step"][i], "step " + std::to_string(i));
    }
  });
}

TEST(PublishedCoefficients, Kl) {
  for_recorded("adaptive_kl", "adaptive_kl", 21, [](const Json& recorded) {
    const Json& options = recorded["options"];
    const AdaptiveKlOptions adaptive{
        .enabled = true, .target = options["target"], .horizon = options["horizon"], .clip = options["clip"]};
    KlCoefficient state{.coefficient = options["init"]};
    for (std::size_t i = 0; i < recorded["sequence"].size(); ++i) {
      state.update(adaptive, recorded["sequence"][i]["kl"], recorded["sequence"][i]["n_steps"]);
      expect_close(state.coefficient, recorded["expected"]["coef"][i], "step " + std::to_string(i));
    }
  });
}

}  // namespace
}  // namespace carnot
