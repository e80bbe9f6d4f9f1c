// A rollout: a small random policy plays two tasks of a search environment, four trajectories each.
//
//   cmake --build build --target example_rollout && build/example_rollout
//
// The engine decodes all trajectories together; environments answer on worker threads. What comes out depends on
// weights and keys only, not on batch size, threads or time.
#include "carnot/core/rollout/rollout.h"

#include <cstdio>

#include "carnot/core/train/model_bundle.h"
#include "carnot/worlds/worlds.h"

using namespace carnot;

namespace {

constexpr const char* kRecipe = R"(
env: {name: search_qa}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
rollout: {group_size: 4, max_context_tokens: 256}
)";

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main() {
  offer_worlds();  // the environments that recipes name
  auto recipe = Recipe::parse(kRecipe, "example", {});
  if (!recipe) return fail(recipe.error());
  if (const Status ready = ModelBundle::prepare_device(recipe->run); !ready) return fail(ready.error());
  const auto bundle = ModelBundle::make(*recipe);
  if (!bundle) return fail(bundle.error());
  const Generation generation = make_generation(*bundle, recipe->rollout, 8);

  std::vector<RolloutTask> tasks;
  for (std::int64_t index = 0; index < 2; ++index)
    tasks.push_back({.uid = "task_" + std::to_string(index),
                     .environment = recipe->environment_name,
                     .task_index = index,
                     .make = [&recipe, index] { return recipe->environment->make(Split::Train, index); }});
  const Rollout rollout = roll_out(*generation.engine, *bundle->chat, *recipe->method.branch, tasks,
                                   recipe->rollout.options, {.seed = 1, .step = 0});

  for (const Trajectory& one : trajectories(rollout.groups))
    std::printf("%s: %d turns, %d tokens sampled, %s\n", one.group->uid.c_str(), one.num_turns(), one.num_sampled(),
                std::string(name_of(one.leaf().outcome)).c_str());
  const Trajectory first = trajectories(rollout.groups).front();
  std::printf("\nThe first of them, as the policy read and wrote it:\n%s\n",
              bundle->tokenizer->decode(first.tokens()).c_str());
  return rollout.metrics.trajectories == 8 ? 0 : 1;
}
