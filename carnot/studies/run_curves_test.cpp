#include "carnot/studies/run_curves.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

namespace carnot {
namespace {

namespace fs = std::filesystem;

TEST(RunCurves, MeansOverAPartOfTheStepsCountThemByTheirMiddles) {
  const Curve curve{{1, 10}, {2, 20}, {3, 30}, {7, 50}};
  EXPECT_DOUBLE_EQ(mean_between(curve, 0, 0.5), 15);
  EXPECT_DOUBLE_EQ(mean_between(curve, 0.5, 1), 40);
  EXPECT_DOUBLE_EQ(mean_between(curve, 0.9, 1), 50);  // too short for a last tenth: the last step
  EXPECT_TRUE(std::isnan(mean_between({}, 0, 1)));
}

TEST(RunCurves, ReadsRunsThatHaveTrainedAndGroupsThemByLabel) {
  const fs::path root = fs::temp_directory_path() / ("carnot_run_curves_" + std::to_string(::getpid()));
  const auto write = [&](const std::string& name, const std::string& text) {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  };
  for (const std::string seed : {"0", "1"}) {
    write(seed + "/config.yaml", "seed: " + seed + "\nmethod: grpo\nenv: sokoban\n");
    write(seed + "/metrics.jsonl",
          "{\"step\":1,\"env/sokoban/success\":0.25,\"x\":null}\n{\"step\":2,\"env/sokoban/"
          "success\":0.5,\"x\":3}\n{\"st");
  }
  write("1/summary.json", "{\"after\":{\"success\":0.75}}");
  write("warm/config.yaml", "method: grpo\nenv: sokoban\n");
  write("warm/metrics.jsonl", "{\"step\":1,\"sft/loss\":2}\n");
  const auto runs = read_curves(std::vector{root});
  ASSERT_TRUE(runs.ok());
  const auto labelled = by_label(*runs);
  ASSERT_EQ(labelled.size(), 1u);
  EXPECT_EQ(labelled[0].label, "grpo");
  EXPECT_EQ(labelled[0].success_curves(), (std::vector<Curve>(2, Curve{{1, 0.25}, {2, 0.5}})));
  EXPECT_EQ(labelled[0].curves("x")[0], (Curve{{2, 3}}));
  EXPECT_EQ(labelled[0].final_success(), (std::vector<double>{0.5, 0.75}));
  fs::remove_all(root);
  EXPECT_FALSE(read_curves(std::vector{root}).ok());
}

TEST(Smoothed, AveragesNeighboursAndPassesOverMissingValues) {
  const double none = std::nan("");
  EXPECT_EQ(smoothed(std::vector{1.0, 2.0, 6.0, 0.0}, 3), (std::vector<double>{1.5, 3, 8.0 / 3, 3}));
  EXPECT_EQ(smoothed(std::vector{1.0, none, 3.0}, 3), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(smoothed(std::vector{1.0, 2.0}, 1), (std::vector<double>{1, 2}));
  EXPECT_TRUE(std::isnan(smoothed(std::vector{none}, 3)[0]));
}

}  // namespace
}  // namespace carnot
