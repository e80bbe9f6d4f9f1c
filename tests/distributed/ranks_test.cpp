// Training steps on several ranks equal those on one, bit for bit.
//
// The test's own process makes no tensor, so that it has one thread when it forks.
#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/file.h"
#include "carnot/core/data/group_bytes.h"
#include "carnot/core/train/sft.h"
#include "carnot/core/train/trainer.h"
#include "carnot/ranks/process_group.h"
#include "testing/forked_ranks.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;

constexpr const char* kRecipe = R"(
threads: 1
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
objective: {entropy_coefficient: 0.01}
rollout: {group_size: 2, max_context_tokens: 320, max_response_tokens: 24}
train: {steps: 2, groups_per_step: 5, learning_rate: 3e-3, mini_batches: 2, micro_batch_tokens: 300}
)";

bool is_result(const std::string& metric) {
  for (const char* of_the_machine : {"timing_s/", "perf/"})
    if (metric.starts_with(of_the_machine)) return false;
  return true;
}

void add_tensors(ByteWriter& out, const Optimizer::Tensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    out.add(name);
    out.add(std::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()));
  }
}

void add_weights(ByteWriter& out, const Model& model) {
  Optimizer::Tensors tensors;
  for (const NamedTensor& named : model.trained()) tensors.emplace_back(named.name, named.tensor);
  add_tensors(out, tensors);
}

/// All results of two steps, except for times.
std::string trained_bytes(Collectives& group, const std::vector<std::string>& settings) {
  Recipe recipe = Recipe::parse(kRecipe, "test", settings).value();
  if (const Status ready = ModelBundle::prepare_device(recipe.run); !ready) return ready.error().message;
  ModelBundle bundle = ModelBundle::make(recipe).value();
  bundle.add_companions(recipe);
  Trainer trainer(recipe, bundle, group);
  ByteWriter out;
  std::string shown;
  for (int step = 0; step < 2; ++step) {
    TrainingStep done = trainer.step(step).value();
    for (const auto& [name, value] : done.metrics) {
      if (!is_result(name)) continue;
      out.add(name);
      out.add(value);
      shown += name + " " + std::to_string(value) + "\n";
    }
    for (Group& one : done.groups)
      for (Tree& tree : one.trees)
        for (Turn& turn : tree.turns) turn.latency_ms = 0;
    out.add(bytes_of_groups(done.groups));
  }
  add_weights(out, *bundle.policy);
  // The first rank gathers the state, for the checkpoint.
  ByteWriter states;
  add_tensors(states, trainer.optimizer().state());
  if (trainer.critic_optimizer()) add_tensors(states, trainer.critic_optimizer()->state());
  out.add(from_first_rank(group, states.take(), "states of the optimizers"));
  return sha256_hex(out.take()) + "\n" + shown;
}

/// The results of three steps of SFT.
std::string demonstrated_bytes(Collectives& group, const std::string& setting) {
  Recipe recipe = Recipe::parse(kRecipe, "test", {setting, "sft.steps=3", "sft.batch_tokens=900"}).value();
  if (const Status ready = ModelBundle::prepare_device(recipe.run); !ready) return ready.error().message;
  ModelBundle bundle = ModelBundle::make(recipe).value();
  bundle.policy->requires_grad(true);
  ShardWork work(group, recipe.train);
  const auto optimizer = work.make_optimizer(optimizer_weights(bundle.policy->trained()), recipe.sft.optimizer);
  SftTrainer trainer(*bundle.policy, work, *optimizer,
                     {.environment = *recipe.environment,
                      .chat = *bundle.chat,
                      .options = recipe.sft,
                      .episode = recipe.rollout.options.episode,
                      .micro_batch_tokens = recipe.train.micro_batch_tokens});
  ByteWriter out;
  std::string shown;
  for (int step = 0; step < 3; ++step) {
    const SftMetrics metrics = trainer.step(step).value();
    for (const double value : {metrics.loss, metrics.context_loss, metrics.grad_norm}) out.add(value);
    shown += "loss " + std::to_string(metrics.loss) + "\n";
  }
  add_weights(out, *bundle.policy);
  return sha256_hex(out.take()) + "\n" + shown;
}

std::vector<std::string> reports_of(int ranks, const std::function<std::string(Collectives&)>& body) {
  std::vector<std::string> reports;
  for (const auto& rank : testing::fork_ranks(ranks, [&](const RankSetting& place) {
         const auto group = std::move(ProcessGroup::join(place)).value();
         const std::string report = body(*group);
         group->leave();
         return report;
       }))
    reports.push_back(rank.report);
  return reports;
}

std::vector<std::string> trained_on(int ranks, const std::vector<std::string>& settings) {
  return reports_of(ranks, [&](Collectives& group) { return trained_bytes(group, settings); });
}

TEST(Ranks, EqualOneRankWithAsManyShardsBitForBit) {
  for (const std::string setting : {"method=grpo", "method=ppo", "train.optimizer=muon"}) {
    const std::string alone = trained_on(1, {setting, "train.virtual_shards=4"}).front();
    EXPECT_THAT(alone, HasSubstr("actor/grad_norm"));
    EXPECT_THAT(alone, ::testing::Not(HasSubstr("actor/grad_norm 0.000000")));
    for (const int ranks : {2, 4})
      for (const std::string& report : trained_on(ranks, {setting, "train.virtual_shards=4"}))
        EXPECT_EQ(report, alone) << setting << " on " << ranks << " ranks";
  }
}

TEST(Ranks, LearnFromDemonstrationsBitForBitAsOneRank) {
  const auto learnt_on = [](int ranks) {
    return reports_of(ranks, [](Collectives& group) { return demonstrated_bytes(group, "train.virtual_shards=4"); });
  };
  const std::string alone = learnt_on(1).front();
  EXPECT_THAT(alone, HasSubstr("\nloss "));
  for (const int ranks : {2, 4}) EXPECT_THAT(learnt_on(ranks), ::testing::Each(alone)) << ranks << " ranks";
}

TEST(Ranks, HaveOneShardEachIfTheRecipeGivesNoNumber) {
  const std::string alone = trained_on(1, {"train.virtual_shards=3"}).front();
  for (const std::string& report : trained_on(3, {"train.virtual_shards=0"})) EXPECT_EQ(report, alone);
}

TEST(Ranks, ThatReduceFastAgreeWithEachOther) {
  const std::vector<std::string> reports = trained_on(2, {"train.gradient_reduction=fast"});
  EXPECT_THAT(reports[0], HasSubstr("actor/grad_norm"));
  EXPECT_EQ(reports[1], reports[0]);
}

TEST(Ranks, MustDivideTheShards) {
  EXPECT_TRUE(check_ranks({.virtual_shards = 4}, 2));
  EXPECT_TRUE(check_ranks({.virtual_shards = 0}, 3));
  const Status status = check_ranks({.virtual_shards = 4}, 3);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("4 cannot be shared evenly by 3 ranks"));
}

}  // namespace
}  // namespace carnot
