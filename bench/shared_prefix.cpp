// The cost of an update if several answers share a prompt: forward and backward pass with the prompt computed for each
// answer, once for all, and over as many rows of separate sequences.
//
//   shared_prefix_bench [CONFIG] [--dtype bfloat16|float32] [--threads N] [--rounds N] [--prompt N] [--answers N]
//   [--tokens N]
//
// CONFIG is a config.json (bench/shapes/qwen2-47m.json); weights are random. --answers answers (16) of --tokens tokens
// (128) after prompts of --prompt tokens (512); the loss counts the answers. The three alternate for --rounds rounds
// (3), and the fastest of each counts.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/data/prefix_tree.h"
#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "model_options.h"
#include "random_model.h"

namespace carnot {
namespace {

struct Settings {
  std::string config = "bench/shapes/qwen2-47m.json", dtype = "bfloat16";
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  int rounds = 3, prompt = 512, answers = 16, tokens = 128;
};

std::vector<TokenId> random_tokens(RandomStream& stream, int length, int vocabulary) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(stream.below(vocabulary)));
  return tokens;
}

/// Rows of a pass, and those whose predictions the loss counts.
struct Pass {
  PrefixTree tree{};
  std::vector<std::int64_t> rows{};
};

enum class Prompt { Repeated, Shared, None };

/// None: sequences of the same length with nothing in common, about as many rows as Shared.
Pass pass_of(const Settings& settings, int vocabulary, Prompt kind) {
  RandomStream stream(1);
  Pass pass;
  const int unique = settings.prompt + settings.answers * settings.tokens, length = settings.prompt + settings.tokens;
  const int sequences = kind == Prompt::None ? std::max(1, unique / length) : settings.answers;
  const int counted = settings.answers * settings.tokens / sequences;
  const auto prompt = random_tokens(stream, settings.prompt, vocabulary);
  for (int s = 0; s < sequences; ++s) {
    auto tokens = kind == Prompt::None ? random_tokens(stream, settings.prompt, vocabulary) : prompt;
    const auto answer = random_tokens(stream, settings.tokens, vocabulary);
    tokens.insert(tokens.end(), answer.begin(), answer.end());
    const auto rows = kind == Prompt::Shared ? pass.tree.add(tokens) : pass.tree.add_alone(tokens);
    pass.rows.insert(pass.rows.end(), rows.end() - std::min<std::ptrdiff_t>(counted, length), rows.end());
  }
  return pass;
}

double seconds_of(Model& model, const Pass& pass) {
  const PackedAttention plan = attention_plan(pass.tree);
  const std::vector<std::int64_t> tokens(pass.tree.tokens().begin(), pass.tree.tokens().end());
  const at::Tensor rows = at::tensor(pass.rows, at::kLong);
  const Stopwatch watch;
  const at::Tensor hidden =
      model.hidden(at::tensor(tokens, at::kLong), at::tensor(pass.tree.positions(), at::kLong), plan);
  const auto statistics = token_statistics(hidden.index_select(0, rows), model, rows.remainder(997));
  (statistics.entropy_T * 0.01 - statistics.logprob_T).sum().backward();
  const double seconds = watch.seconds();
  for (const NamedTensor& weight : model.parameters()) weight.tensor.mutable_grad().reset();
  return seconds;
}

int run(const Settings& settings) {
  auto opened = random_model(settings.config, settings.dtype, settings.threads);
  if (!opened) return std::fprintf(stderr, "%s\n", opened.error().message.c_str()), 1;
  Model& model = *opened;
  at::set_num_threads(1);
  model.requires_grad(true);
  constexpr Prompt kKinds[] = {Prompt::Repeated, Prompt::Shared, Prompt::None};
  const char* names[] = {"prompt for each answer", "prompt once", "separate sequences"};
  std::vector<Pass> passes;
  for (const Prompt kind : kKinds) passes.push_back(pass_of(settings, model.config().vocab_size, kind));
  std::vector<double> best(passes.size(), 1e30);
  for (int round = 0; round < settings.rounds; ++round)
    for (std::size_t p = 0; p < passes.size(); ++p) best[p] = std::min(best[p], seconds_of(model, passes[p]));
  std::printf(
      "%s, %s, %d threads, %s: %d answers of %d tokens behind %d\n\n| | rows | seconds | of `prompt once` |\n"
      "|---|---|---|---|\n",
      settings.config.c_str(), settings.dtype.c_str(), settings.threads,
      kernel_sets(number_type_named(settings.dtype)).c_str(), settings.answers, settings.tokens, settings.prompt);
  for (std::size_t p = 0; p < passes.size(); ++p)
    std::printf("| %s | %d | %.2f | %.2f |\n", names[p], passes[p].tree.num_rows(), best[p], best[p] / best[1]);
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
                                          {"--prompt", &settings.prompt},
                                          {"--answers", &settings.answers},
                                          {"--tokens", &settings.tokens}}});
  return carnot::run(settings);
}
