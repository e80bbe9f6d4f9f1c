// The analyses that read rollouts, on random rollouts, against plain loops over the same trajectories.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "carnot/core/base/statistics.h"
#include "carnot/core/credit/group_relative.h"
#include "carnot/core/credit/turn_gain.h"
#include "carnot/core/credit/turn_group_gain.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/studies/analyze.h"
#include "carnot/studies/correlation.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

double number(const Cell& cell) { return std::get<double>(cell); }

class RolloutAnalyses : public ::testing::Test {
 protected:
  RolloutAnalyses() : root_(fs::temp_directory_path() / ("carnot_rollout_analyses_" + std::to_string(::getpid()))) {
    RandomStream random(17);
    groups_ = testing::random_groups(random, {.groups = 12, .fresh_share = 0.1, .columns = testing::all_columns()});
    for (Group& group : groups_)
      for (Tree& tree : group.trees)
        for (Turn& turn : tree.turns) turn.turn_entropy = random.uniform();
    credit_ = testing::random_credit(random, groups_);
    all_ = trajectories(groups_);
    fs::create_directories(root_ / "run/rollouts");
    std::ofstream(root_ / "run/config.yaml") << "method: arpo\nenv: search_qa\n";
    std::ofstream(root_ / "run/rollouts/step_1.jsonl") << rollout_rows(groups_, credit_, nullptr);
  }
  ~RolloutAnalyses() override { fs::remove_all(root_); }

  AnalysisReport run(const std::string& name, const std::vector<std::string>& overrides = {}) const {
    std::ostringstream out;
    const auto report = analyze(
        {.name = name, .paths = {root_ / "run"}, .overrides = overrides, .output = root_ / "out"}, {.out = out});
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
    EXPECT_TRUE(report && !report->figures.empty());
    return report.ok() ? *report : AnalysisReport{};
  }

  /// The value of `column` in each row of a table.
  static std::vector<double> column(const AnalysisReport& report, const std::string& table, const std::string& column) {
    for (const Table& one : report.tables)
      if (one.name == table) return one.numbers(column);
    return {};
  }

  template <class Visit>
  void for_each_sampled(Visit visit) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].leaf().is_included()) continue;
      const auto sampled = all_[i].sampled();
      for (std::size_t t = 0; t < sampled.size(); ++t)
        if (sampled[t]) visit(i, t);
    }
  }

  double value(std::size_t i, std::size_t t, Column column) const { return all_[i].column(column)[t]; }

  fs::path root_;
  std::vector<Group> groups_;
  CreditTable credit_;
  std::vector<Trajectory> all_;
};

TEST_F(RolloutAnalyses, GainsByTurnAreThoseOfTheTurns) {
  std::map<int, std::vector<double>> raw;
  for (const Trajectory& one : all_)
    for (int k = 0; one.leaf().is_included() && k < one.num_turns(); ++k)
      if (one.turn(k).info_gain) raw[k + 1].push_back(*one.turn(k).info_gain);
  std::vector<double> means;
  for (const auto& [turn, values] : raw) means.push_back(mean(values));
  ASSERT_GT(means.size(), 1u);
  const AnalysisReport report = run("a2tgpo-gain");
  const auto found = column(report, "by turn", "mean");
  for (std::size_t k = 0; k < means.size(); ++k) EXPECT_NEAR(found[k], means[k], 1e-12);
}

TEST_F(RolloutAnalyses, AdvantagesOfTurnsByStepAreThoseOfTheMethods) {
  const AnalysisReport report = run("a2tgpo-gain");
  const CreditTable igpo = run_credit(std::vector{turn_gain({})}, all_);
  const CreditTable a2tgpo =
      run_credit(std::vector{group_relative({.normalisation = population_normalisation()}), turn_group_gain({})}, all_);
  std::vector<double> expected;
  for (const CreditTable* table : {&igpo, &a2tgpo})
    for (const int turn : {0, 1}) {
      std::vector<double> advantages;
      for (std::size_t i = 0; i < all_.size(); ++i) {
        const Trajectory& one = all_[i];
        if (!one.leaf().is_included() || one.num_turns() <= turn || !one.turn(turn).info_gain) continue;
        if (one.turn(turn).num_sampled() > 0) advantages.push_back((*table)[i].advantage[one.sampled_begin(turn)]);
      }
      expected.push_back(mean(advantages));
    }
  const auto found = column(report, "turns by step", "mean advantage");
  ASSERT_EQ(found.size(), expected.size()) << "one step";
  for (std::size_t n = 0; n < found.size(); ++n) EXPECT_NEAR(found[n], expected[n], 1e-12);
}

TEST_F(RolloutAnalyses, SuccessiveGainsAreThoseOfOneTrajectorysTurnsInOrder) {
  std::vector<double> before, after;
  for (const Trajectory& one : all_) {
    std::optional<double> last;
    for (int k = 0; one.leaf().is_included() && k < one.num_turns(); ++k) {
      if (!one.turn(k).info_gain) continue;
      if (last) {
        before.push_back(*last);
        after.push_back(*one.turn(k).info_gain);
      }
      last = one.turn(k).info_gain;
    }
  }
  ASSERT_GT(before.size(), 2u);
  const AnalysisReport report = run("a2tgpo-gain");
  for (const Finding& finding : report.findings)
    if (finding.what.starts_with("Pearson")) {
      EXPECT_THAT(finding.ours, HasSubstr(correlation_text({.value = pearson(before, after)}).substr(0, 6)));
      EXPECT_THAT(finding.ours, HasSubstr("n = " + std::to_string(before.size())));
      return;
    }
  FAIL() << "no correlation of successive gains";
}

TEST_F(RolloutAnalyses, OutcomeAndGainsOfATurnAreThoseOfTheQuarterOfItsGroupThatReachesIt) {
  const CreditRule outcome = group_relative({.normalisation = population_normalisation()});
  const CreditTable alone = run_credit(std::vector{outcome}, all_);
  const CreditTable both = run_credit(std::vector{outcome, turn_group_gain({})}, all_);
  const auto reaches = [](const Trajectory& one, int turn) {
    return one.num_turns() > turn && one.turn(turn).info_gain && one.turn(turn).num_sampled() > 0;
  };
  std::map<int, std::vector<double>> outcomes, gains;
  for (std::size_t i = 0; i < all_.size(); ++i)
    for (int k = 0; all_[i].leaf().is_included() && k < all_[i].num_turns(); ++k) {
      if (!reaches(all_[i], k)) continue;
      double members = 0, reached = 0;
      for (const Trajectory& other : all_) {
        if (other.group_index != all_[i].group_index || !other.leaf().is_included()) continue;
        members += 1;
        reached += reaches(other, k);
      }
      const int quarter = static_cast<int>(std::ceil(4 * reached / members)), first = all_[i].sampled_begin(k);
      outcomes[quarter].push_back(std::abs(alone[i].advantage[first]));
      gains[quarter].push_back(std::abs(both[i].advantage[first] - alone[i].advantage[first]));
    }
  const AnalysisReport report = run("a2tgpo-gain");
  const std::string table = "by share of the group that reaches the turn";
  const auto quarters = column(report, table, "quarter"), counts = column(report, table, "turns"),
             found_outcomes = column(report, table, "mean |outcome|"),
             found_gains = column(report, table, "mean |gains|");
  ASSERT_EQ(quarters.size(), outcomes.size());
  ASSERT_GT(quarters.size(), 1u);
  for (std::size_t q = 0; q < quarters.size(); ++q) {
    const int quarter = static_cast<int>(quarters[q]);
    EXPECT_EQ(counts[q], outcomes[quarter].size());
    EXPECT_NEAR(found_outcomes[q], mean(outcomes[quarter]), 1e-12);
    EXPECT_NEAR(found_gains[q], mean(gains[quarter]), 1e-12);
  }
}

TEST_F(RolloutAnalyses, TheProbeIsComparedWithTheLaterRolloutsOfItsGroup) {
  std::vector<double> expected;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    double sum = 0, count = 0;
    bool probed = false;
    int valid = 0;
    for (const Trajectory& one : all_) {
      if (one.group_index != static_cast<int>(g) || !one.leaf().valid()) continue;
      ++valid;
      double calls = 0;
      for (int k = 1; k < one.num_turns(); ++k) calls += *one.turn(k).turn_entropy;
      if (one.leaf().sibling == 0)
        probed = true;
      else {
        sum += one.num_turns() > 1 ? *one.turn(0).turn_entropy - calls / (one.num_turns() - 1) : 0;
        count += 1;
      }
    }
    if (probed && valid > 1 && count > 0) expected.push_back(sum / count);
  }
  const auto found = column(run("aepo-budget"), "groups", "later ones");
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t g = 0; g < expected.size(); ++g) EXPECT_NEAR(found[g], expected[g], 1e-12);
}

TEST_F(RolloutAnalyses, NormalisedGainsHaveMeanZeroInEveryTurnOfChains) {
  const AnalysisReport report = run("a2tgpo-gain");
  for (const Table& table : report.tables) {
    if (table.name != "by turn") continue;
    for (const auto& row : table.rows)
      if (std::get<std::string>(row[0]) == "normalised gain") {
        EXPECT_LT(std::abs(number(row[3])), 0.5);
      }
  }
}

TEST_F(RolloutAnalyses, ClippedTokensAreThoseWhoseRatioLeavesTheRangeOnTheirSide) {
  double above = 0, below = 0, tokens = 0, plain = 0, preserved = 0;
  for_each_sampled([&](std::size_t i, std::size_t t) {
    const double ratio = std::exp(value(i, t, Column::LogProbCurrent) - value(i, t, Column::LogProbOld));
    const double a = credit_[i].advantage[t];
    const bool high = a > 0 && ratio > 1.28, low = a < 0 && ratio < 0.8, dual = a < 0 && ratio > 3;
    tokens += 1;
    above += high;
    below += low;
    plain += high || low || dual ? 0 : std::abs(a) * ratio;
    preserved += high ? std::abs(a) * 1.28 : low || dual ? 0 : std::abs(a) * ratio;
  });
  const AnalysisReport report = run("aepo-clip", {"bins=4"});
  const auto sizes = column(report, "by entropy", "tokens"), high = column(report, "by entropy", "clipped from above"),
             low = column(report, "by entropy", "clipped from below");
  ASSERT_EQ(sizes.size(), 4u);
  double found_above = 0, found_below = 0, found = 0, mass = 0, saved = 0;
  for (std::size_t b = 0; b < sizes.size(); ++b) {
    found += sizes[b];
    found_above += sizes[b] * high[b];
    found_below += sizes[b] * low[b];
    mass += column(report, "by entropy", "gradient mass, plain")[b];
    saved += column(report, "by entropy", "gradient mass, preserved")[b];
  }
  EXPECT_EQ(found, tokens);
  EXPECT_NEAR(found_above, above, 1e-9);
  EXPECT_NEAR(found_below, below, 1e-9);
  EXPECT_NEAR(mass, plain, 1e-9 * plain);
  EXPECT_NEAR(saved, preserved, 1e-9 * preserved);
}

TEST_F(RolloutAnalyses, EnergyIsCorrelatedGroupByGroup) {
  std::map<int, std::pair<std::vector<double>, std::set<std::size_t>>> by_group;
  for_each_sampled([&](std::size_t i, std::size_t t) {
    auto& [energies, members] = by_group[all_[i].group_index];
    energies.push_back(value(i, t, Column::EnergyReference));
    members.insert(i);
  });
  std::map<int, std::vector<double>> scores;
  for (const Trajectory& one : all_)
    if (one.leaf().is_included()) scores[one.group_index].push_back(one.leaf().score);
  std::vector<double> energy, deviation;
  for (const auto& [group, found] : by_group) {
    if (scores[group].size() < 2) continue;
    energy.push_back(mean(found.first));
    deviation.push_back(std_population(scores[group]));
  }
  const AnalysisReport report = run("actfocus-energy");
  EXPECT_EQ(report.findings[0].ours, correlation_text(resampled_spearman(energy, deviation)));
}

TEST_F(RolloutAnalyses, WithEqualWeightsTheActionsMassIsTheBasesOwn) {
  double action = 0, all = 0, action_tokens = 0, tokens = 0;
  for_each_sampled([&](std::size_t i, std::size_t t) {
    const bool acts = all_[i].kinds()[t] == SpanKind::Action;
    tokens += 1;
    action_tokens += acts;
    all += std::abs(credit_[i].advantage[t]);
    action += acts ? std::abs(credit_[i].advantage[t]) : 0;
  });
  const AnalysisReport report = run("actfocus-weights", {"alphas=[1]", "betas=[0]"});
  EXPECT_NEAR(column(report, "gradient mass", "share of action tokens")[0], action / all, 1e-12);
  EXPECT_EQ(column(report, "action tokens", "action tokens")[0], action_tokens);
  EXPECT_EQ(column(report, "action tokens", "sampled tokens")[0], tokens);
  const AnalysisReport none = run("actfocus-weights", {"alphas=[0]", "betas=[0.5]"});
  EXPECT_EQ(column(none, "gradient mass", "share of action tokens")[0], 1);
}

TEST_F(RolloutAnalyses, WithoutARadiusClustersAreTheDifferentSets) {
  std::map<int, std::set<std::set<TokenId>>> sets;
  for (const Trajectory& one : all_) {
    if (!one.leaf().is_included()) continue;
    std::set<TokenId> own;
    for (std::size_t t = 0; t < one.tokens().size(); ++t)
      if (one.sampled()[t]) own.insert(one.tokens()[t]);
    sets[one.group_index].insert(own);
  }
  std::vector<double> clusters;
  for (const auto& [group, different] : sets) clusters.push_back(static_cast<double>(different.size()));
  const AnalysisReport report = run("aepo-diversity", {"radius=0", "neighbours=1"});
  EXPECT_NEAR(column(report, "diversity", "clusters a group")[0], mean(clusters), 1e-12);
}

TEST_F(RolloutAnalyses, TheClipScaleFollowsBetaAndAWideRangeHoldsNothing) {
  const AnalysisReport report = run("a2tgpo-clip", {"betas=[0, 0.5]", "clip_low=1000", "clip_high=1e9"});
  for (const double share : column(report, "turns held by turn", "share")) EXPECT_EQ(share, 0);
  bool spreads = false;
  for (const auto& row : report.tables[0].rows) {
    if (std::get<std::string>(row[0]) == "0") {
      EXPECT_EQ(number(row[3]), 1);
      EXPECT_EQ(number(row[4]), 0);
    } else {
      EXPECT_GE(number(row[5]), 0.5);
      EXPECT_LE(number(row[9]), 1.5);
      spreads = spreads || number(row[4]) > 0;
    }
  }
  EXPECT_TRUE(spreads);
}

TEST_F(RolloutAnalyses, BranchesAndBudgetsCountEveryGroup) {
  double branches = 0;
  for (const Group& group : groups_)
    for (const Tree& tree : group.trees)
      for (const Leaf& leaf : tree.leaves) branches += leaf.parent >= 0 && leaf.branch_turn > 0 ? 1 : 0;
  const AnalysisReport report = run("aepo-branches");
  double found = 0;
  for (const double count : column(report, "receivers of branches", "branches")) found += count;
  EXPECT_GT(branches, 0);
  EXPECT_EQ(found, branches);
  const auto budgets = column(run("aepo-budget", {"slope=0"}), "groups", "budget m");
  ASSERT_FALSE(budgets.empty());
  for (const double m : budgets) EXPECT_GE(m, 1);
}

TEST_F(RolloutAnalyses, SimilarityComparesTurnsOfDifferentRollouts) {
  double same = 0, different = 0;
  for (std::size_t i = 0; i < all_.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (all_[i].group_index != all_[j].group_index || !all_[i].leaf().is_included() || !all_[j].leaf().is_included())
        continue;
      for (int a = 0; a < all_[i].num_turns(); ++a)
        for (int b = 0; b < all_[j].num_turns(); ++b) {
          if (&all_[i].turn(a) == &all_[j].turn(b)) continue;
          const auto counts = [](const Turn& turn) {
            bool any = turn.num_sampled() > 0;
            for (const Span& span : turn.spans)
              any = any || (span.kind == SpanKind::Observation && span.end > span.begin);
            return any;
          };
          if (counts(all_[i].turn(a)) && counts(all_[j].turn(b))) (a == b ? same : different) += 1;
        }
    }
  const AnalysisReport report = run("a2tgpo-similarity");
  EXPECT_EQ(column(report, "similarity by step", "pairs").back(), same);
  EXPECT_EQ(column(report, "similarity by step", "other pairs").back(), different);
}

TEST_F(RolloutAnalyses, ASignalThatIsMissingIsNamedWithWhatWritesIt) {
  for (Group& group : groups_)
    for (Tree& tree : group.trees) {
      tree.columns.clear(Column::EnergyReference);
      tree.columns.clear(Column::LogProbCurrent);
      for (Turn& turn : tree.turns) turn.info_gain.reset();
    }
  std::ofstream(root_ / "run/rollouts/step_1.jsonl") << rollout_rows(groups_, {}, nullptr);
  const auto refusal = [&](const std::string& name) {
    std::ostringstream out;
    const auto report = analyze({.name = name, .paths = {root_ / "run"}, .output = root_ / "out"}, {.out = out});
    return report.ok() ? std::string("no error") : report.error().message;
  };
  EXPECT_THAT(refusal("actfocus-energy"), HasSubstr("energy_ref: no number"));
  EXPECT_THAT(refusal("actfocus-energy"), HasSubstr("rollout.extra_signals=[reference]"));
  EXPECT_THAT(refusal("a2tgpo-gain"), HasSubstr("rollout.extra_signals=[info_gain]"));
  EXPECT_THAT(refusal("aepo-clip"), HasSubstr("logp: no number"));
}

}  // namespace
}  // namespace carnot
