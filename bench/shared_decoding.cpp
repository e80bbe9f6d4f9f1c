// Decoding of many answers to one prompt, whose blocks of the cache they share.
//
//   shared_decoding_bench [CONFIG] [--dtype bfloat16|float32] [--threads N] [--rounds N] [--prompt N] [--answers N]
//   [--tokens N] [--apart]
//
// CONFIG is a config.json (bench/shapes/qwen2-47m.json); weights are random. --answers answers (32) of --tokens tokens
// (32) after a prompt of --prompt tokens (512), sampled with log-probability, entropy and logsumexp of each token; the
// prompt is computed before. Of --rounds rounds (3), the one with the least processor time counts, which other
// processes disturb less than wall time. --apart computes the prompt for each answer as well, so that they share
// nothing, alternating with the shared one, and compares what is sampled bit for bit.
//
// Next to the speed: how a step's time is divided, the cache's blocks in use, and the share of two limits that were
// measured in the same run. The limit of a step is the longer one of
//   reading       weights, and keys and values of distinct positions, at the speed of memory
//   multiplying   2 operations for each weight and answer, 4 for each number of a head's query and position it sees
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/nn/linear.h"
#include "machine_limits.h"
#include "model_options.h"
#include "processor_time.h"
#include "random_model.h"

namespace carnot {
namespace {

struct Settings {
  std::string config = "bench/shapes/qwen2-47m.json", dtype = "bfloat16";
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  int rounds = 3, prompt = 512, answers = 32, tokens = 32;
  bool apart = false;
};

std::vector<TokenId> prompt_tokens(int length, int vocabulary) {
  RandomStream stream(1);
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; ++i) tokens.push_back(static_cast<TokenId>(stream.below(vocabulary)));
  return tokens;
}

/// Answers to a prompt that is computed once for all of them, or for each.
class Answers {
 public:
  Answers(const Model& model, const Settings& settings, bool apart)
      : settings_(settings),
        runner_(model, {.blocks = blocks(settings, apart), .states = states(settings, apart)}),
        engine_(runner_, {.max_batch_tokens = 4096}) {
    const auto prompt = prompt_tokens(settings.prompt, model.config().vocab_size);
    for (int i = 0; i < (apart ? settings.answers : 1); ++i) prompts_.push_back(engine_.start(prompt));
    while (engine_.has_work()) engine_.step();
  }

  struct Run {
    double seconds = 0, processor = 1e30;
    double forward = 0, sampling = 0, scheduling = 0;  ///< of these seconds
    double cache_mebibytes = 0;                        ///< in use at the end
    std::vector<TokenDraw> draws{};
  };
  /// All answers' tokens after their first, which computes the prompt's last token.
  Run decode() {
    std::vector<SequenceId> answers;
    for (int i = 0; i < settings_.answers; ++i) {
      answers.push_back(engine_.fork(prompts_[static_cast<std::size_t>(i) % prompts_.size()], settings_.prompt));
      engine_.sample(answers.back(), {.key = {.seed = 1, .sibling = static_cast<std::uint64_t>(i)},
                                      .max_tokens = settings_.tokens + 1});
    }
    Run run;
    const auto step = [&] {
      for (const SampledToken& token : engine_.step().tokens) run.draws.push_back(token.draw);
    };
    step();
    const EngineMetrics before = engine_.metrics();
    const double processor = processor_seconds();
    const Stopwatch watch;
    while (engine_.has_work()) step();
    run.seconds = watch.seconds();
    run.processor = processor_seconds() - processor;
    const EngineMetrics& after = engine_.metrics();
    run.forward = after.seconds_forward - before.seconds_forward;
    run.sampling = after.seconds_sampling - before.seconds_sampling;
    run.scheduling = after.seconds_scheduling - before.seconds_scheduling;
    const double all = runner_.cache_size().blocks;
    run.cache_mebibytes = (all - engine_.free_blocks()) / all * static_cast<double>(runner_.cache_bytes()) / (1 << 20);
    for (const SequenceId answer : answers) engine_.release(answer);
    return run;
  }

 private:
  static int blocks(const Settings& settings, bool apart) {
    const int prompt = settings.prompt / kBlockTokens + 1, answer = settings.tokens / kBlockTokens + 3;
    return prompt * (apart ? settings.answers : 1) + settings.answers * answer;
  }

  static int states(const Settings& settings, bool apart) { return settings.answers + (apart ? settings.answers : 1); }

  const Settings& settings_;
  DecoderRunner runner_;
  Engine engine_;
  std::vector<SequenceId> prompts_{};
};

/// Seconds of a step halfway, by each limit.
struct Limits {
  double reading = 0, multiplying = 0;
};
Limits limits_of(const Model& model, const Settings& settings, double read_gigabytes, double gigaflops) {
  const ModelConfig& config = model.config();
  double weights = 0;
  for (const NamedTensor& weight : model.parameters()) weights += static_cast<double>(weight.tensor.numel());
  const double bytes = settings.dtype == "bfloat16" ? 2 : 4, answers = settings.answers;
  const double own = settings.tokens / 2.0, positions = settings.prompt + own;
  const double cached = 2.0 * config.num_layers * config.num_kv_heads * config.head_dim * bytes;
  const double queries = static_cast<double>(config.num_layers) * config.num_heads * config.head_dim;
  return {.reading = 1e-9 * (weights * bytes + cached * (settings.prompt + answers * own)) / read_gigabytes,
          .multiplying = 1e-9 * (2 * weights * answers + 4 * queries * answers * positions) / gigaflops};
}

bool same_bits(const std::vector<TokenDraw>& a, const std::vector<TokenDraw>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const TokenDraw& x, const TokenDraw& y) {
    return x.token == y.token && x.log_prob == y.log_prob && x.entropy == y.entropy && x.logsumexp == y.logsumexp;
  });
}

void print(const char* what, const Settings& settings, const Answers::Run& run, const Limits& limits) {
  const double step = run.seconds / settings.tokens, part = 1e3 / settings.tokens;
  std::printf("| %s | %.0f | %.2f | %.2f | %.2f | %.2f | %.3f | %.1f | %.2f | %.2f |\n", what, settings.answers / step,
              1e3 * step, part * run.processor, part * run.forward, part * run.sampling, part * run.scheduling,
              run.cache_mebibytes, limits.reading / step, limits.multiplying / step);
  std::fflush(stdout);
}

int run(const Settings& settings) {
  auto opened = random_model(settings.config, settings.dtype, settings.threads);
  if (!opened) return std::fprintf(stderr, "%s\n", opened.error().message.c_str()), 1;
  const Model& model = *opened;
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  const auto numbers = random_floats(1 << 18);
  const double reading = reading_speed(), multiplying = settings.dtype == "bfloat16"
                                                            ? multiplying_speed_bfloat16(in_bfloat16(numbers))
                                                            : multiplying_speed_float32(numbers);
  std::printf(
      "%s, %s, %d threads, %s: %d answers of %d tokens behind %d; %.1f GB/s, %.0f GFLOP/s\n\n"
      "| | tokens/s | ms a step | forward | head and sampling | scheduling | MiB of cache | of reading | of "
      "multiplying |\n"
      "|---|---|---|---|---|---|---|---|---|\n",
      settings.config.c_str(), settings.dtype.c_str(), settings.threads,
      kernel_sets(number_type_named(settings.dtype)).c_str(), settings.answers, settings.tokens, settings.prompt,
      reading, multiplying);
  std::deque<Answers> kinds;
  for (const bool apart : {false, true})
    if (!apart || settings.apart) kinds.emplace_back(model, settings, apart);
  std::vector<Answers::Run> best(kinds.size());
  for (int round = 0; round < settings.rounds; ++round) {
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      Answers::Run run = kinds[k].decode();
      if (run.processor < best[k].processor) best[k] = std::move(run);
    }
  }
  const Limits limits = limits_of(model, settings, reading, multiplying);
  print("blocks shared", settings, best[0], limits);
  if (!settings.apart) return 0;
  print("blocks apart", settings, best[1], limits);
  const bool same = same_bits(best[0].draws, best[1].draws);
  std::printf("\nThe same tokens, log-probabilities and entropies to the bit: %s\n", same ? "yes" : "NO");
  return same ? 0 : 1;
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
                                          {"--tokens", &settings.tokens}},
                              .switches = {{"--apart", &settings.apart}}});
  return carnot::run(settings);
}
