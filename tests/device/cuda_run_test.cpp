// Whole runs on a GPU, and the message that refuses them on a machine without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "carnot/core/nn/cuda_backend.h"
#include "carnot/core/run/run.h"
#include "carnot/cuda/statistics/device_statistics.h"
#include "testing/missing.h"
#include "tests/device/small_recipe.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

Result<RunEnd> run_in(const fs::path& folder, std::vector<std::string> settings) {
  settings.insert(settings.end(), {"device=cuda", "run_folder=" + folder.string()});
  Recipe recipe = Recipe::parse(testing::kSmallRecipe, "test", settings).value();
  std::ostringstream out;
  return run_training(recipe, {.out = out});
}

TEST(RunOnCuda, CompletesOnAMachineWithAGpu) {
  offer_cuda_statistics();
  if (const Status cuda = load_cuda_backend(); !cuda) CARNOT_SKIP(Gpu, cuda.error().message);
  for (const std::vector<std::string>& settings : {std::vector<std::string>{"method=ppo"},
                                                   {"method=ppo", "dtype=bfloat16"},
                                                   {"method=grpo + aent", "lora.rank=4"}}) {
    const fs::path folder = fs::temp_directory_path() / ("carnot_cuda_run_test_" + std::to_string(::getpid()));
    const auto end = run_in(folder, settings);
    ASSERT_TRUE(end.ok()) << end.error().message;
    EXPECT_EQ(*end, RunEnd::Complete);
    fs::remove_all(folder);
  }
}

TEST(RunOnCuda, IsRefusedWithAMessageOnAMachineWithoutAGpu) {
  if (load_cuda_backend()) CARNOT_SKIP(NoGpu, "CUDA was loaded");
  const auto end = run_in("/nowhere/to/be/made", {});
  ASSERT_FALSE(end.ok());
  EXPECT_THAT(end.error().message, ::testing::StartsWith("device: cuda: "));
  EXPECT_THAT(end.error().message, ::testing::EndsWith("; expected cpu"));
  EXPECT_FALSE(fs::exists("/nowhere"));
}

}  // namespace
}  // namespace carnot
