// The record of each method's chain: where a token's credit comes from, rule by rule.
#include "carnot/core/credit/chain_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "carnot/core/method/method.h"
#include "reference/turn_credit.h"
#include "testing/method_recipes.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

using testing::method_of;

std::vector<std::string> compositions() {
  std::vector<std::string> all{"ppo + gigpo + actfocus", "tree_grpo + aem", "rloo + arpo + aem", "dapo + a2tgpo"};
  for (const MethodEntry& entry : methods()) {
    if (entry.is_base()) all.emplace_back(entry.name);
    if (entry.is_add_on()) all.push_back("grpo + " + std::string(entry.name));
  }
  return all;
}

struct Recorded {
  std::vector<Group> groups{};
  std::vector<Trajectory> all{};
  CreditTable credit{};
  std::vector<RuleRecord> records{};
};

/// Each composition on random groups, with a KL in the reward.
template <class Check>
void for_each_method(std::uint64_t seed, const Check& check) {
  RandomStream random(seed);
  for (const std::string& composition : compositions()) {
    const std::vector<CreditRule> chain = credit_chain(method_of(composition), 0.05);
    for (int trial = 0; trial < 6; ++trial) {
      Recorded one{.groups = testing::random_groups(random, {.dropped_share = 0.1, .columns = testing::all_columns()})};
      one.all = trajectories(one.groups);
      one.credit = run_credit(chain, one.all);
      one.records = record_credit(chain, one.all);
      ASSERT_EQ(one.records.size(), chain.size());
      check(composition, one);
    }
  }
}

void expect_same(const std::vector<double>& a, const std::vector<double>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t t = 0; t < a.size(); ++t)
    EXPECT_TRUE(a[t] == b[t] || (std::isnan(a[t]) && std::isnan(b[t]))) << what << " token " << t;
}

TEST(ChainRecord, EndsAtTheCreditOfEveryMethodToTheBit) {
  for_each_method(81, [](const std::string& composition, const Recorded& one) {
    for (std::size_t i = 0; i < one.all.size(); ++i) {
      const Credit& last = one.records.back().after[i];
      expect_same(last.advantage, one.credit[i].advantage, composition);
      expect_same(last.weight, one.credit[i].weight, composition);
      expect_same(last.clip_scale, one.credit[i].clip_scale, composition);
      expect_same(last.value_target, one.credit[i].value_target, composition);
    }
  });
}

/// Follows one token through the chain: base rules by what they add, others by their factor.
void expect_follows(const Recorded& one, std::size_t i, std::size_t t, const std::string& composition) {
  double advantage = 0, weight = 1, before = 0, weight_before = 1;
  for (const RuleRecord& record : one.records) {
    const double after = record.after[i].advantage[t], weight_after = record.after[i].weight[t];
    // What a turn shares is a mean over trajectories: without an advantage before, there is no factor.
    const bool scales = record.kind == RuleKind::Modulator && before != 0;
    advantage = scales ? advantage * (after / before) : advantage + (after - before);
    weight *= weight_before == 0 ? 0 : weight_after / weight_before;
    before = after;
    weight_before = weight_after;
  }
  const Credit& credit = one.credit[i];
  EXPECT_NEAR(advantage, credit.advantage[t], 1e-12 * (1 + std::fabs(credit.advantage[t]))) << composition;
  EXPECT_NEAR(weight, credit.weight[t], 1e-12) << composition;
}

TEST(ChainRecord, SumsAndProductsOfTheRulesAreTheCredit) {
  for_each_method(82, [](const std::string& composition, const Recorded& one) {
    for (std::size_t i = 0; i < one.all.size(); ++i) {
      const std::vector<bool> sampled = one.all[i].sampled();
      for (std::size_t t = 0; t < sampled.size(); ++t)
        if (sampled[t]) expect_follows(one, i, t, composition);
    }
  });
}

const std::vector<double>* reading(const RuleRecord& record, std::string_view name, std::size_t i) {
  for (const RuleReading& one : record.readings)
    if (one.name == name) return &one.values[i];
  return nullptr;
}

TEST(ChainRecord, ReadingsAreThoseFromWhichTheRuleComputes) {
  int compared = 0, factors = 0;
  for_each_method(83, [&](const std::string& composition, const Recorded& one) {
    for (const RuleRecord& record : one.records) {
      const bool compares = record.rule == "group_relative" || record.rule == "leave_one_out";
      for (std::size_t i = 0; i < one.all.size(); ++i) {
        const std::vector<double>& advantage = record.after[i].advantage;
        const auto* reward = reading(record, "reward", i);
        const auto* mean = reading(record, "group mean", i);
        const auto* divisor = reading(record, "divisor", i);
        for (std::size_t t = 0; compares && t < advantage.size(); ++t) {
          if (std::isnan((*reward)[t])) continue;
          EXPECT_EQ(((*reward)[t] - (*mean)[t]) / (*divisor)[t], advantage[t]) << composition;
          ++compared;
        }
        const auto* entropy = reading(record, "response entropy", i);
        if (entropy == nullptr) continue;
        for (int k = 0; k < one.all[i].num_turns() && one.all[i].leaf().is_included(); ++k) {
          if (one.all[i].turn(k).num_sampled() == 0) continue;
          const auto t = static_cast<std::size_t>(one.all[i].sampled_begin(k));
          const double rank = (*reading(record, "its rank", i))[t];
          EXPECT_TRUE(rank >= 1 && rank <= (*reading(record, "responses compared", i))[t]);
          ++factors;
        }
      }
    }
  });
  EXPECT_GT(compared, 5000);
  EXPECT_GT(factors, 500);
}

TEST(ChainRecord, FactorsOfAemAreThoseOfTheSlowReference) {
  RandomStream random(84);
  int compared = 0;
  for (int trial = 0; trial < 40; ++trial) {
    const auto groups = testing::random_groups(random, {.columns = testing::all_columns()});
    const auto all = trajectories(groups);
    const auto records = record_credit(method_of("grpo + aem").credit, all);
    for (std::size_t i = 0; i < all.size(); ++i)
      for (int k = 0; k < all[i].num_turns() && all[i].leaf().is_included(); ++k) {
        if (all[i].turn(k).num_sampled() == 0) continue;
        const auto t = static_cast<std::size_t>(all[i].sampled_begin(k));
        const double before = records[0].after[i].advantage[t];
        EXPECT_NEAR(records[1].after[i].advantage[t], reference::entropy_factor(all, i, k, 1) * before, 1e-9);
        ++compared;
      }
  }
  EXPECT_GT(compared, 500);
}

TEST(ChainRecord, EveryRuleOfAMethodSaysWhatItLookedAt) {
  std::map<std::string, std::size_t> readings;
  for_each_method(85, [&](const std::string&, const Recorded& one) {
    for (const RuleRecord& record : one.records) readings[record.rule] += record.readings.size();
  });
  EXPECT_GE(readings.size(), 10u);
  for (const auto& [rule, number] : readings) EXPECT_GT(number, 0u) << rule;
}

}  // namespace
}  // namespace carnot
