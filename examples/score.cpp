// A score: the log-probability of every token of a string under a model, and the string's perplexity.
//
//   cmake --build build --target example_score && build/example_score [MODEL_FOLDER] [TEXT]
//
// MODEL_FOLDER is a Hugging Face folder; without one, a small random model scores the string, whose perplexity is then
// about the size of its vocabulary. The bits are those of the same tokens in a rollout or a training batch.
#include <cmath>
#include <cstdio>
#include <numeric>

#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/worlds/worlds.h"

using namespace carnot;

namespace {

constexpr const char* kRecipe = R"(
env: {name: search_qa}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
)";

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  offer_worlds();  // the environments that recipes name
  auto recipe = count > 1 ? Recipe::parse("", "example", {std::string("model.path=") + arguments[1]})
                          : Recipe::parse(kRecipe, "example", {});
  if (!recipe) return fail(recipe.error());
  if (const Status ready = ModelBundle::prepare_device(recipe->run); !ready) return fail(ready.error());
  const auto bundle = ModelBundle::make(*recipe);
  if (!bundle) return fail(bundle.error());

  const std::string text = count > 2 ? arguments[2] : "What is the region of Pelminster ?";
  MeasuredSequence sequence{.tokens = bundle->tokenizer->encode(text)};
  sequence.targets.resize(sequence.tokens.size() - 1);  // every token but the first, which nothing predicts
  std::iota(sequence.targets.begin(), sequence.targets.end(), 1);
  const TargetStatistics scores =
      measure_targets(*bundle->policy, {&sequence, 1}, /*max_tokens=*/4096, /*temperature=*/1);

  for (std::size_t t = 0; t < scores.log_prob.size(); ++t)
    std::printf("%8.3f  %s\n", scores.log_prob[t], bundle->tokenizer->decode({&sequence.tokens[t + 1], 1}).c_str());
  const double mean = std::accumulate(scores.log_prob.begin(), scores.log_prob.end(), 0.0) /
                      static_cast<double>(scores.log_prob.size());
  std::printf("perplexity %.1f, vocabulary %d\n", std::exp(-mean), static_cast<int>(bundle->tokenizer->vocab_size()));
  return std::isfinite(mean) && mean < 0 ? 0 : 1;
}
