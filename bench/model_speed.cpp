// Prefill, decoding and training of a model with random weights, with Carnot's kernels and with LibTorch's operators.
//
//   model_speed_bench [CONFIG] [--dtype bfloat16|float32] [--threads N] [--rounds N] [--tokens N] [--prompt N]
//   [--train]
//
// CONFIG is a config.json (bench/shapes/qwen2-47m.json). Decoding samples --tokens tokens (16) after prompts of
// --prompt tokens (256), through the engine, with log-probability, entropy and logsumexp of each; prefill is the pass
// over the prompts before. Ours and LibTorch's alternate for --rounds rounds (3), and the fastest of each counts.
// --train adds a step of training, 4 sequences of 256 tokens, forward and backward. Prints tokens per second.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/nn/token_statistics.h"
#include "model_options.h"
#include "random_model.h"

namespace carnot {
namespace {

struct Settings {
  std::string config = "bench/shapes/qwen2-47m.json", dtype = "bfloat16";
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  int rounds = 3, tokens = 16, prompt = 256;
  bool train = false;
};

struct Speed {
  double prefill = 0, decode = 0;  ///< tokens per second
};

std::vector<TokenId> random_prompt(int length, int vocabulary, std::uint64_t seed) {
  RandomStream stream(seed);
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(stream.below(vocabulary)));
  return tokens;
}

/// One batch through the engine: prompts, then `tokens` tokens of each.
Speed decode(const Model& model, const Settings& settings, int batch) {
  DecoderRunner runner(model,
                       {.blocks = batch * ((settings.prompt + settings.tokens) / kBlockTokens + 2), .states = batch});
  Engine engine(runner, {.max_batch_tokens = 8192});
  std::vector<SequenceId> sequences;
  for (int b = 0; b < batch; ++b) {
    const auto prompt = random_prompt(settings.prompt, model.config().vocab_size, static_cast<std::uint64_t>(b));
    sequences.push_back(engine.start(prompt));
  }
  for (int b = 0; b < batch; ++b)
    engine.sample(sequences[static_cast<std::size_t>(b)],
                  {.key = {.seed = 1, .group = static_cast<std::uint64_t>(b)}, .max_tokens = settings.tokens + 1});
  const Stopwatch watch;
  engine.step();  // the prompts, and each sequence's first token
  const double filled = watch.seconds();
  int sampled = 0;
  while (engine.has_work()) sampled += static_cast<int>(engine.step().tokens.size());
  return {.prefill = batch * settings.prompt / filled, .decode = sampled / (watch.seconds() - filled)};
}

/// Forward and backward passes over 4 sequences of 256 tokens, all of which the loss counts.
double train(Model& model) {
  constexpr int kSequences = 4, kLength = 256;
  std::vector<std::int64_t> tokens, positions, targets;
  PackedAttention plan;
  RandomStream stream(3);
  for (int s = 0; s < kSequences; ++s) {
    for (int p = 0; p < kLength; ++p) {
      tokens.push_back(static_cast<std::int64_t>(stream.below(model.config().vocab_size)));
      targets.push_back(static_cast<std::int64_t>(stream.below(model.config().vocab_size)));
      positions.push_back(p);
    }
    plan.offsets.push_back(static_cast<int>(tokens.size()));
  }
  model.requires_grad(true);
  const Stopwatch watch;
  const at::Tensor hidden = model.hidden(at::tensor(tokens, at::kLong), at::tensor(positions, at::kLong), plan);
  const auto statistics = token_statistics(hidden, model, at::tensor(targets, at::kLong));
  (statistics.entropy_T * 0.01 - statistics.logprob_T).sum().backward();
  const double speed = kSequences * kLength / watch.seconds();
  for (const NamedTensor& weight : model.parameters()) weight.tensor.mutable_grad().reset();
  model.requires_grad(false);
  return speed;
}

void print(const char* what, int batch, double ours, double theirs) {
  std::printf("| %s | %d | %.1f | %.1f | %.2f |\n", what, batch, ours, theirs, ours / theirs);
  std::fflush(stdout);
}

int run(const Settings& settings) {
  auto opened = random_model(settings.config, settings.dtype, settings.threads);
  if (!opened) return std::fprintf(stderr, "%s\n", opened.error().message.c_str()), 1;
  Model& own = *opened;
  Model theirs = own;  // shares the weights
  theirs.choose_kernels(KernelChoice::Portable);
  std::printf(
      "%s, %s, %d threads, %s\n\n| tokens per second | batch | Carnot | LibTorch's operators | ratio |\n"
      "|---|---|---|---|---|\n",
      settings.config.c_str(), settings.dtype.c_str(), settings.threads,
      kernel_sets(number_type_named(settings.dtype)).c_str());
  // Each side's threads sleep while the other side's run.
  const auto alternate = [&](const auto& ours_once, const auto& theirs_once) {
    for (int round = 0; round < settings.rounds; ++round) {
      at::set_num_threads(1);
      ours_once();
      at::set_num_threads(settings.threads);
      theirs_once();
    }
  };
  const auto better = [](Speed& best, const Speed& now) {
    best = {.prefill = std::max(best.prefill, now.prefill), .decode = std::max(best.decode, now.decode)};
  };
  for (int batch : {1, 8, 32}) {
    const at::NoGradGuard no_grad;
    Speed ours, libtorch;
    alternate([&] { better(ours, decode(own, settings, batch)); },
              [&] { better(libtorch, decode(theirs, settings, batch)); });
    print("decode", batch, ours.decode, libtorch.decode);
    print("prefill", batch, ours.prefill, libtorch.prefill);
  }
  if (!settings.train) return 0;
  double ours = 0, libtorch = 0;
  alternate([&] { ours = std::max(ours, train(own)); }, [&] { libtorch = std::max(libtorch, train(theirs)); });
  print("training, 256 tokens each", 4, ours, libtorch);
  return 0;
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  carnot::Settings settings;
  carnot::read_model_options(count, values,
                             {.config = settings.config,
                              .dtype = settings.dtype,
                              .numbers = {{"--threads", &settings.threads},
                                          {"--rounds", &settings.rounds},
                                          {"--tokens", &settings.tokens},
                                          {"--prompt", &settings.prompt}},
                              .switches = {{"--train", &settings.train}}});
  return carnot::run(settings);
}
