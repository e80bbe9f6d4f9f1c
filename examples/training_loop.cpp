// A training loop: a few steps of SFT on a script's demonstrations, then a few steps of GRPO.
//
//   cmake --build build --target example_training_loop && build/example_training_loop
//
// This is `carnot train` without its run folder, checkpoints and reports. A step is a function of weights, optimizer
// and (seed, step). The model is too small and the steps too few to learn: recipes/quickstart.yaml is the real thing.
#include <cstdio>

#include "carnot/core/train/sft.h"
#include "carnot/core/train/trainer.h"
#include "carnot/worlds/worlds.h"

using namespace carnot;

namespace {

constexpr const char* kRecipe = R"(
env: {name: search_qa}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
sft: {steps: 5, batch_tokens: 512}
method: grpo
rollout: {group_size: 4, max_context_tokens: 256}
train: {steps: 3, groups_per_step: 2, learning_rate: 3e-4}
)";

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

Status sft(const Recipe& recipe, ModelBundle& bundle, Collectives& ranks) {
  bundle.policy->requires_grad(true);
  ShardWork work(ranks, recipe.train);
  const auto optimizer = work.make_optimizer(optimizer_weights(bundle.policy->trained()), recipe.sft.optimizer);
  SftTrainer trainer(*bundle.policy, work, *optimizer,
                     {.environment = *recipe.environment,
                      .chat = *bundle.chat,
                      .options = recipe.sft,
                      .episode = recipe.rollout.options.episode});
  for (std::int64_t step = 0; step < recipe.sft.steps; ++step) {
    const auto metrics = trainer.step(step);
    if (!metrics) return metrics.error();
    std::printf("SFT %lld  loss %.3f\n", static_cast<long long>(step + 1), metrics->loss);
  }
  return Done{};
}

}  // namespace

int main() {
  offer_worlds();  // the environments that recipes name
  auto recipe = Recipe::parse(kRecipe, "example", {});
  if (!recipe) return fail(recipe.error());
  if (const Status ready = ModelBundle::prepare_device(recipe->run); !ready) return fail(ready.error());
  auto bundle = ModelBundle::make(*recipe);
  if (!bundle) return fail(bundle.error());
  OneProcess alone;
  if (const Status done = sft(*recipe, *bundle, alone); !done) return fail(done.error());

  bundle->add_companions(*recipe);  // a reference or a critic, if the method needs one
  Trainer trainer(*recipe, *bundle, alone);
  for (std::int64_t step = 0; step < recipe->train.steps; ++step) {
    const auto result = trainer.step(step);
    if (!result->trained) return fail(result->trained.error());
    std::printf("step %lld  score %.3f  entropy %.3f  gradient %.3g\n", static_cast<long long>(step + 1),
                result->metrics.at("critic/score/mean"), result->metrics.at("actor/entropy"),
                result->metrics.at("actor/grad_norm"));
  }
  return 0;
}
