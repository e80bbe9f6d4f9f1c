#include "carnot/core/credit/measured_advantage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/random.h"
#include "testing/random_groups.h"

namespace carnot {
namespace {

TEST(MeasuredAdvantage, IsTheColumnOnSampledTokensAndNothingElsewhere) {
  RandomStream random(7);
  auto groups = testing::random_groups(random, {.groups = 4, .columns = testing::all_columns()});
  const int unknown = groups[0].trees[0].turns[0].sampled_begin;
  groups[0].trees[0].columns.edit(Column::AdvantageOracle, 0,
                                  static_cast<int>(groups[0].trees[0].turns[0].tokens.size()))[unknown] = std::nan("");
  const std::vector<Trajectory> all = trajectories(groups);
  const CreditRule rule = measured_advantage();
  const CreditTable credit = run_credit(std::span(&rule, 1), all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<double> measured = all[i].column(Column::AdvantageOracle);
    const std::vector<bool> sampled = all[i].sampled();
    for (std::size_t t = 0; t < sampled.size(); ++t) {
      const bool counts = sampled[t] && all[i].leaf().is_included() && !std::isnan(measured[t]);
      EXPECT_EQ(credit[i].advantage[t], counts ? measured[t] : 0.0);
    }
  }
}

}  // namespace
}  // namespace carnot
