#include "carnot/view/run_curves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/statistics.h"
#include "carnot/view/lists.h"

namespace carnot {
namespace {

OrderedJson curve_named(const OrderedJson& curves, std::string_view name) {
  for (const OrderedJson& curve : curves)
    if (curve.at("name") == name) return curve.at("points");
  return {};
}

TEST(RunCurves, DrawTheMetricsOfTheTableThatTheRunHas) {
  const OrderedJson curves = run_curves(R"({"step": 1, "critic/score/mean": 0.25, "env/word_problems/success": 0.5}
{"step": 2, "critic/score/mean": 0.123456789, "perf/throughput": 5}
{"step": 3, "critic/score/mean": nul
{"step": 4, "critic/score/mean": null}
)");
  EXPECT_EQ(curve_named(curves, "score").dump(), "[[1,0.25],[2,0.12346]]");
  EXPECT_EQ(curve_named(curves, "success").dump(), "[[1,0.5]]");
  EXPECT_EQ(curves.size(), 2U);
  EXPECT_EQ(run_curves("").dump(), "[]");
}

TEST(RunCurves, GiveEvaluationsAnIntervalOverTasks) {
  const OrderedJson curves =
      run_curves(R"({"step": 4, "val-core/search_qa/success/mean@2": 0.75, "val-core/search_qa/success_2/mean@2": 0.5,)"
                 R"( "val-aux/search_qa/trajectories": 40})");
  const Interval interval = wilson_interval(15, 20);
  EXPECT_EQ(curve_named(curves, "evaluation"),
            OrderedJson::array({{4, 0.75, rounded(interval.low), rounded(interval.high)}}));
}

}  // namespace
}  // namespace carnot
