// Ranks whose tensors are on a device that is not the CPU (testing/separate_device) equal one rank there, bit for bit:
// gradients and weights travel through the host's memory, and everything else stays on the device.
//
// The test's own process makes no tensor, so that it has one thread when it forks.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/file.h"
#include "carnot/core/train/trainer.h"
#include "carnot/ranks/process_group.h"
#include "testing/forked_ranks.h"
#include "testing/separate_device/separate_device.h"
#include "tests/device/small_recipe.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

/// Weights and gradient norms of two steps.
std::string trained_bytes(Collectives& group, const std::vector<std::string>& settings) {
  std::vector<std::string> overrides{"threads=1", "train.virtual_shards=2"};
  overrides.insert(overrides.end(), settings.begin(), settings.end());
  Recipe recipe = Recipe::parse(testing::kSmallRecipe, "test", overrides).value();
  recipe.run.device = testing::separate_device().str();
  if (const Status ready = ModelBundle::prepare_device(recipe.run); !ready) return ready.error().message;
  ModelBundle bundle = ModelBundle::make(recipe).value();
  bundle.policy->choose_kernels(KernelChoice::Portable);
  bundle.add_companions(recipe);
  Trainer trainer(recipe, bundle, group);
  ByteWriter out;
  std::string shown;
  for (int step = 0; step < 2; ++step) {
    const auto done = trainer.step(step);
    if (!done) return "no step";
    shown += "norm " + std::to_string(done->metrics.at("actor/grad_norm")) + "\n";
  }
  for (const NamedTensor& weight : bundle.policy->parameters()) {
    if (weight.tensor.device() != testing::separate_device()) return weight.name + " has left its device";
    const at::Tensor here = weight.tensor.detach().cpu();
    out.add(std::string_view(static_cast<const char*>(here.const_data_ptr()), here.nbytes()));
  }
  // The first rank gathers the state, for the checkpoint.
  (void)trainer.optimizer().state();
  return sha256_hex(out.take()) + "\n" + shown;
}

std::vector<std::string> trained_on(int ranks, const std::vector<std::string>& settings) {
  std::vector<std::string> reports;
  for (const auto& rank : testing::fork_ranks(ranks, [&](const RankSetting& place) {
         const auto group = std::move(ProcessGroup::join(place)).value();
         const std::string report = trained_bytes(*group, settings);
         group->leave();
         return report;
       }))
    reports.push_back(rank.report);
  return reports;
}

TEST(RanksOnSeparateDevices, EqualOneRankThereBitForBit) {
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"method=grpo"},
        {"method=ppo", "dtype=bfloat16"},
        {"method=grpo", "dtype=bfloat16", "train.master_weights=false", "train.moments=bfloat16"}}) {
    const std::string alone = trained_on(1, settings).front();
    ASSERT_THAT(alone, AllOf(HasSubstr("\nnorm "), Not(HasSubstr("norm 0.000000")))) << settings.front();
    EXPECT_THAT(trained_on(2, settings), Each(alone)) << settings.back();
  }
}

}  // namespace
}  // namespace carnot
