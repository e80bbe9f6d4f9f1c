#include "carnot/core/run/start_plan.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/temporary_name.h"
#include "carnot/core/run/alike.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

Recipe recipe_with(const std::vector<std::string>& settings) {
  return std::move(Recipe::parse("", "recipe", settings)).value();
}

class SettledShards : public ::testing::Test {
 protected:
  SettledShards() : folder_(make_temporary_folder(fs::temp_directory_path()).value()) {}
  ~SettledShards() override { fs::remove_all(folder_); }

  fs::path recorded(const std::vector<std::string>& settings) const {
    Recipe recipe = recipe_with(settings);
    EXPECT_TRUE(write_file_atomically(folder_ / "config.yaml", recipe.to_yaml()).ok());
    return folder_ / "config.yaml";
  }

  /// The number of shards, or the error.
  static std::string settled(const std::vector<std::string>& settings, const fs::path& config, int ranks) {
    const auto shards = settled_shards(recipe_with(settings), config, ranks);
    return shards ? std::to_string(*shards) : shards.error().message;
  }

  fs::path folder_;
};

TEST_F(SettledShards, AreOneForEachRankOfANewRun) {
  for (const int ranks : {1, 3}) {
    EXPECT_EQ(settled({}, {}, ranks), std::to_string(ranks));
    EXPECT_EQ(settled({}, folder_ / "config.yaml", ranks), std::to_string(ranks));
  }
  EXPECT_EQ(settled({"train.virtual_shards=6"}, {}, 3), "6");
  EXPECT_THAT(settled({"train.virtual_shards=6"}, {}, 4), HasSubstr("6 cannot be shared evenly by 4 ranks"));
  EXPECT_EQ(settled({"train.gradient_reduction=fast"}, {}, 3), "0");
}

TEST_F(SettledShards, OfAResumedRunStayWhatTheyWere) {
  const fs::path config = recorded({"train.virtual_shards=4"});
  EXPECT_EQ(settled({}, config, 1), "4");
  EXPECT_EQ(settled({}, config, 2), "4");
  EXPECT_THAT(settled({}, config, 3), HasSubstr("was made with 4, which 3 ranks cannot share evenly"));
  EXPECT_EQ(settled({"resume_changes=allow"}, config, 3), "3");
  EXPECT_EQ(settled({"train.virtual_shards=8"}, config, 2), "8") << "check_resumed_settings() refuses it";
}

TEST_F(SettledShards, OfARunThatSaysNothingAreThoseOfOneProcess) {
  const fs::path config = recorded({});
  EXPECT_EQ(settled({}, config, 1), "1");
  EXPECT_THAT(settled({}, config, 2), HasSubstr("was made with 1, which 2 ranks cannot share evenly"));
}

/// The second rank of two, whose gathers give `first` for the first.
class SecondRank : public OneProcess {
 public:
  explicit SecondRank(std::string first) : first_(std::move(first)) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  std::vector<std::string> gather(const std::string& mine, const std::string&) override {
    own = mine;
    return {first_, mine};
  }

  std::string own{};

 private:
  std::string first_;
};

TEST(StartPlan, OfRankZeroIsThatOfAllRanks) {
  OneProcess alone;
  const StartPlan plan{.folder = {"runs/a"},
                       .checkpoint = FoundCheckpoint{.step = 7, .path = "runs/b/checkpoints/global_step_7"},
                       .recorded = "runs/b/config.yaml",
                       .virtual_shards = 4};
  const auto got = planned_for_all(alone, "plan", [&] { return Result<StartPlan>(plan); });
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->folder.root, plan.folder.root);
  EXPECT_EQ(got->checkpoint->path, plan.checkpoint->path);
  EXPECT_EQ(got->step(), 7);
  EXPECT_EQ(got->recorded, plan.recorded);
  EXPECT_EQ(got->virtual_shards, 4);
  const auto fresh = planned_for_all(alone, "plan", [&] { return Result<StartPlan>(StartPlan{}); });
  EXPECT_FALSE(fresh->checkpoint);
  const auto refused = planned_for_all(alone, "plan", [] { return Result<StartPlan>(Error{"full"}); });
  EXPECT_EQ(refused.error().message, "full");
}

TEST(GroupStart, FindsWeightsThatDifferInOneBit) {
  at::Tensor weight = at::ones({3});
  SecondRank other("other");
  const Status differ = check_same_weights(other, {{"w", weight}}, "weights");
  ASSERT_FALSE(differ.ok());
  EXPECT_THAT(differ.error().message, HasSubstr("rank 1: has other weights than rank 0"));
  SecondRank same(other.own);
  EXPECT_TRUE(check_same_weights(same, {{"w", weight}}, "weights").ok());
  weight[1] = 1 + 1e-7;
  EXPECT_FALSE(check_same_weights(same, {{"w", weight}}, "weights").ok());
}

}  // namespace
}  // namespace carnot
