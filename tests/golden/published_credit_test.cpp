// Every recorded case of published credit rules, through our default or a named option.
#include <gtest/gtest.h>

#include <array>
#include <map>

#include "carnot/core/credit/gae.h"
#include "carnot/core/credit/group_estimator.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/reinforce.h"
#include "carnot/core/credit/step_group.h"
#include "carnot/core/credit/token_gain.h"
#include "carnot/core/credit/tree_relative.h"
#include "carnot/core/credit/turn_gain.h"
#include "carnot/core/credit/turn_group_gain.h"
#include "recorded_cases.h"
#include "reference/gain_outcome.h"

namespace carnot {
namespace {

using testing::expect_rows;
using testing::expect_tokens;
using testing::for_recorded;
using testing::RecordedGroups;
using testing::RecordedRows;

constexpr Whitening kPublishedWhitening{.epsilon = 1e-8, .count_epsilon = 1e-8};

/// Records begin with the response, rollouts with a prompt: credit must not depend on it.
constexpr std::array kPromptTokens = {0, 3};

void expect_columns(const Json& recorded, const std::vector<CreditRule>& chain,
                    const std::map<std::string, std::vector<double> Credit::*>& columns) {
  for (const int prompt_tokens : kPromptTokens) {
    SCOPED_TRACE(std::to_string(prompt_tokens) + " prompt tokens");
    const RecordedGroups built(recorded, prompt_tokens);
    const CreditTable table = run_credit(chain, built.all);
    for (const auto& [name, column] : columns)
      if (recorded["expected"].contains(name)) expect_tokens(recorded["expected"][name], built, table, column);
  }
}

void expect_advantages(const Json& recorded, const std::vector<CreditRule>& chain) {
  ASSERT_TRUE(recorded["expected"].contains("advantage"));
  expect_columns(recorded, chain, {{"advantage", &Credit::advantage}, {"clip_scale", &Credit::clip_scale}});
}

void expect_advantages_and_returns(const Json& recorded, const CreditRule& rule) {
  ASSERT_TRUE(recorded["expected"].contains("advantage") && recorded["expected"].contains("returns"));
  expect_columns(recorded, {rule}, {{"advantage", &Credit::advantage}, {"returns", &Credit::value_target}});
}

void expect_row_advantages(const Json& recorded, const std::string& name, const std::vector<CreditRule>& chain) {
  for (const int prompt_tokens : kPromptTokens) {
    SCOPED_TRACE(std::to_string(prompt_tokens) + " prompt tokens");
    const RecordedRows built(recorded, prompt_tokens);
    expect_rows(recorded["expected"][name], built, run_credit(chain, built.all));
  }
}

TEST(PublishedCredit, GroupRelative) {
  for_recorded("adv_grpo", "grpo", 55, [](const Json& recorded) {
    expect_advantages(recorded, {group_relative({.normalisation = {.divide_by_std = recorded["options"]["norm_by_std"],
                                                                   .singleton = Singleton::Raw}})});
  });
  for_recorded("adv_grpo", "grpo_vectorized", 57, [](const Json& recorded) {
    expect_advantages(recorded, {group_relative({.normalisation = {.divide_by_std = recorded["options"]["norm_by_std"],
                                                                   .variance_floor = 1e-6,
                                                                   .singleton = Singleton::Raw}})});
  });
}

TEST(PublishedCredit, LeaveOneOut) {
  for_recorded("adv_rloo", "rloo", 19, [](const Json& recorded) {
    expect_advantages(recorded, {leave_one_out({.singleton = Singleton::Raw})});
  });
  for_recorded("adv_rloo", "rloo_vectorized", 30,
               [](const Json& recorded) { expect_advantages(recorded, {leave_one_out()}); });
}

Statistics statistics_of(const Json& recorded) {
  return recorded["options"]["statistics"] == "rows" ? Statistics::Rows : Statistics::FirstRows;
}

TEST(PublishedCredit, GroupsOfRows) {
  for_recorded("adv_rows_verl_agent", "grpo_rows", 87, [](const Json& recorded) {
    const CreditRule rule = group_relative(
        {.normalisation = {.divide_by_std = recorded["options"]["norm_by_std"], .singleton = Singleton::Raw},
         .statistics = statistics_of(recorded)});
    expect_row_advantages(recorded, "advantage", {rule});
  });
  for_recorded("adv_rows_verl_agent", "rloo_rows", 48, [](const Json& recorded) {
    const CreditRule rule = leave_one_out({.singleton = Singleton::Raw, .statistics = statistics_of(recorded)});
    expect_row_advantages(recorded, "advantage", {rule});
  });
}

TEST(PublishedCredit, OtherBaselines) {
  for_recorded("adv_other", "opo", 25,
               [](const Json& recorded) { expect_advantages(recorded, {length_weighted_baseline(Singleton::Raw)}); });
  for_recorded("adv_other", "gpg", 25,
               [](const Json& recorded) { expect_advantages(recorded, {nonzero_scaled(Singleton::Raw)}); });
  for_recorded("adv_other", "grpo_passk", 37, [](const Json& recorded) {
    expect_advantages(recorded, {best_of_group({.divide_by_std = recorded["options"]["norm_by_std"]})});
  });
}

TEST(PublishedCredit, Reinforce) {
  for_recorded("adv_reinforce_pp", "reinforce_pp", 24, [](const Json& recorded) {
    expect_advantages(recorded, {reinforce({.gamma = recorded["options"]["gamma"],
                                            .whitening = kPublishedWhitening,
                                            .restart_at_observations = true})});
  });
  for_recorded("adv_reinforce_pp", "reinforce_pp_baseline", 26, [](const Json& recorded) {
    expect_advantages(
        recorded, {reinforce({.group_baseline = true, .singleton = Singleton::Raw, .whitening = kPublishedWhitening})});
  });
}

TEST(PublishedCredit, Gae) {
  const auto options = [](const Json& recorded, bool skip) {
    return GaeOptions{.gamma = recorded["options"]["gamma"],
                      .lambda = recorded["options"]["lambda"],
                      .whitening = kPublishedWhitening,
                      .skip_unsampled = skip};
  };
  for_recorded("adv_gae", "gae", 27,
               [&](const Json& recorded) { expect_advantages_and_returns(recorded, gae(options(recorded, true))); });
  for_recorded("adv_gae", "gae_legacy_no_skip", 34,
               [&](const Json& recorded) { expect_advantages_and_returns(recorded, gae(options(recorded, false))); });
}

TEST(PublishedCredit, BilevelGae) {
  for_recorded("adv_bilevel_gae", "bilevel_gae", 35, [](const Json& recorded) {
    expect_advantages_and_returns(recorded, bilevel_gae({.gamma = recorded["options"]["gamma"],
                                                         .lambda = recorded["options"]["lambda"],
                                                         .turn_gamma = recorded["options"]["high_level_gamma"],
                                                         .whitening = kPublishedWhitening,
                                                         .turns_end_at_rewards = true}));
  });
}

TEST(PublishedCredit, StepGroups) {
  int with_duplicates = 0;
  for_recorded("adv_gigpo", "gigpo", 70, [&](const Json& recorded) {
    bool duplicates = false;
    for (const Json& row : recorded["rows"]) duplicates = duplicates || row["duplicate"];
    const Json& options = recorded["options"];
    const bool divide = options["mode"] == "mean_std_norm";
    const CreditRule episode = group_relative(
        {.normalisation = {.divide_by_std = divide, .singleton = Singleton::Raw}, .statistics = Statistics::Rows});
    const CreditRule step =
        step_group({.weight = options["step_advantage_w"],
                    .discount = options["gamma"],
                    .normalisation = {.divide_by_std = divide},
                    .similarity = options["similarity"] ? options["similarity_thresh"].get<double>() : 1});
    expect_row_advantages(recorded, "advantage", {episode, step});
    expect_row_advantages(recorded, "episode_advantage", {episode});
    with_duplicates += duplicates ? 1 : 0;
    if (duplicates) return;  // a copied row is a separate trajectory here, and there a later row of an existing one
    const CreditRule first = group_relative(
        {.normalisation = {.divide_by_std = divide, .singleton = Singleton::Raw}, .statistics = Statistics::FirstRows});
    expect_row_advantages(recorded, "episode_advantage_per_trajectory_stats", {first});
  });
  EXPECT_EQ(with_duplicates, 23);
}

TEST(PublishedCredit, TreeRelative) {
  const std::vector<std::pair<std::string, TreeEstimator>> estimators = {
      {"tree_grpo_tree", TreeEstimator::GroupAndTree},
      {"tree_grpo_tree_inner", TreeEstimator::Tree},
      {"tree_grpo_tree_2norm", TreeEstimator::Nested},
      {"tree_grpo_tree_per_token", TreeEstimator::PerToken}};
  const std::vector<int> counts = {26, 23, 27, 17};
  for (std::size_t e = 0; e < estimators.size(); ++e)
    for_recorded("adv_tree_grpo", estimators[e].first, counts[e], [&](const Json& recorded) {
      expect_advantages(
          recorded,
          {tree_relative({.estimator = estimators[e].second, .normalisation = {.singleton = Singleton::Raw}})});
    });
  for_recorded("adv_tree_grpo", "tree_grpo_grpo", 16, [](const Json& recorded) {
    expect_advantages(recorded, {group_relative({.normalisation = {.singleton = Singleton::Raw}})});
  });
}

Normalisation population_of(const Json& recorded) {
  Normalisation normalisation = population_normalisation();
  normalisation.divide_by_std = recorded["options"]["norm_by_std"];
  return normalisation;
}

TEST(PublishedCredit, TurnGroupGain) {
  for_recorded("adv_a2tgpo", "a2tgpo_turn-group-v1d", 56, [](const Json& recorded) {
    const Json& options = recorded["options"];
    expect_advantages(recorded, {group_relative({.normalisation = population_of(recorded)}),
                                 turn_group_gain({.weight = options["alpha"],
                                                  .discount = options["gamma"],
                                                  .clip_swing = options["clip_beta"],
                                                  .normalisation = population_of(recorded),
                                                  .steps = GainSteps::NonzeroGains})});
  });
}

TEST(PublishedCredit, TurnGain) {
  const std::vector<std::pair<std::string, GainPool>> pools = {{"a2tgpo_joint", GainPool::Joint},
                                                               {"a2tgpo_separate", GainPool::Separate},
                                                               {"a2tgpo_turn-group", GainPool::StepSums}};
  const std::vector<int> counts = {27, 24, 26};
  for (std::size_t p = 0; p < pools.size(); ++p)
    for_recorded("adv_a2tgpo", pools[p].first, counts[p], [&](const Json& recorded) {
      expect_advantages(recorded, {turn_gain({.pool = pools[p].second,
                                              .discount = recorded["options"]["gamma"],
                                              .normalisation = population_of(recorded),
                                              .steps = GainSteps::NonzeroGains})});
    });
}

TEST(PublishedCredit, TokenGain) {
  for_recorded("adv_igpo", "igpo_nov2025", 49, [](const Json& recorded) {
    expect_advantages(recorded,
                      {token_gain({.restart_at_observations = recorded["options"]["mask"] == "sampled_tokens"})});
  });
  for_recorded("adv_igpo", "igpo_nov2025_unused_discounted", 52, [](const Json& recorded) {
    expect_advantages(recorded, {token_gain({.discount = recorded["options"]["gamma"],
                                             .baseline = TokenBaseline::FirstToken,
                                             .normalisation = {.divide_by_std = recorded["options"]["norm_by_std"]}})});
  });
}

/// Where the recorded tokens begin a further turn: at each "\n<|im_start|>assistant".
std::vector<std::size_t> turn_begins(const std::vector<std::string>& tokens) {
  std::vector<std::size_t> begins = {0};
  for (std::size_t t = 1; t + 1 < tokens.size(); ++t)
    if (tokens[t] == "<|im_start|>" && tokens[t + 1] == "assistant") begins.push_back(t - 1);
  return begins;
}

TEST(PublishedCredit, PlacementOfGains) {
  for_recorded("igpo_placement", "igpo_reward_placement", 19, [](const Json& recorded) {
    const auto tokens = recorded["tokens"].get<std::vector<std::string>>();
    std::vector<std::size_t> begins = turn_begins(tokens);
    auto gains = recorded["ig"].get<std::vector<double>>();
    if (begins.size() > 10 && gains.size() + 2 == begins.size()) gains.push_back(0);
    if (gains.size() + 1 != begins.size()) gains.clear();  // the source drops gains that it cannot place
    begins.push_back(tokens.size());

    Group group;
    group.trees.emplace_back();
    Tree& tree = group.trees.front();
    for (std::size_t k = 0; k + 1 < begins.size(); ++k) {
      Turn turn{.parent = static_cast<int>(k) - 1};
      turn.tokens.assign(begins[k + 1] - begins[k], 0);
      extend_spans(turn.spans, SpanKind::Observation, static_cast<int>(turn.tokens.size()));
      if (k < gains.size()) turn.info_gain = gains[k];
      tree.turns.push_back(turn);
    }
    tree.leaves.push_back({.turn = static_cast<int>(tree.turns.size()) - 1});
    const std::vector<Group> groups = {group};
    const double outcome = reference::gain_outcome(recorded["solution"], recorded["ground_truth"]);
    const std::vector<double> rewards = token_gain_rewards(trajectories(groups).front(), outcome);
    ASSERT_EQ(rewards.size(), tokens.size());
    for (std::size_t t = 0; t < tokens.size(); ++t)
      testing::expect_close(rewards[t], recorded["expected"]["scores"][t], "token " + std::to_string(t));
  });
}

}  // namespace
}  // namespace carnot
