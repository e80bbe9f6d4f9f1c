// One cell of the benchmark on a GPU: what tools/gpu_check/bench collects into bench/results/gpu.md.
//
//   gpu_bench                    the names of the cells
//   gpu_bench CELL [--device cuda|cpu] [--small] [--bytes-per-second X] [--flops X]
//
// Prints one JSON object: cell, value, unit, better (higher or lower), limit (in the same unit, from the two rates,
// which the cells copy and product measure), limit_fraction, peak_mebibytes (of tensors), note. Weights are random.
// Each figure is the best of three after a warm-up, unless its note says otherwise. --small runs every cell in a second
// on a CPU, to see that it works.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/nn/cuda_backend.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/rollout/forked_log_probs.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/cuda/statistics/device_statistics.h"
#include "gpu_cell.h"

namespace carnot {
namespace {

// ---- the machine ------------------------------------------------------------------------------------------------

Figure copy(const Settings& settings) {
  const std::int64_t bytes = std::int64_t{1} << (settings.small ? 24 : 32);
  const at::Tensor from = at::ones({bytes}, settings.options(at::kByte)), to = at::empty_like(from);
  const double seconds = best_of_three(settings, [&] { to.copy_(from); });
  return {.value = 2.0 * static_cast<double>(bytes) / seconds, .unit = "bytes/s", .note = "read and written"};
}

Figure product(const Settings& settings) {
  const std::int64_t n = settings.size(8192, 256);
  const at::Tensor a = at::randn({n, n}, settings.options(at::kBFloat16)), b = at::randn_like(a);
  const int times = settings.size(10, 1);
  const double seconds = best_of_three(settings, [&] {
    for (int i = 0; i < times; ++i) at::mm(a, b);
  });
  return {.value = 2.0 * std::pow(static_cast<double>(n), 3) * times / seconds, .unit = "FLOP/s", .note = "bfloat16"};
}

Figure operator_call(const Settings& settings) {
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::zeros({1}, settings.options(at::kFloat));
  const int times = settings.size(20000, 200);
  const double seconds = best_of_three(settings, [&] {
    for (int i = 0; i < times; ++i) x.add_(1);
  });
  return {.value = 1e6 * seconds / times, .unit = "us", .higher_is_better = false, .note = "x += 1 on one number"};
}

// ---- models -----------------------------------------------------------------------------------------------------

Model model_of(const Settings& settings, const std::string& shape) {
  const std::string file = "bench/shapes/" + (settings.small ? "qwen2-smallest" : shape) + ".json";
  const ModelConfig config = parse_model_config(read_file(file).value(), file).value();
  const Model model = Model::uninitialised(config, settings.options(at::kBFloat16));
  const at::NoGradGuard no_grad;
  for (const NamedTensor& weight : model.parameters()) {
    if (weight.tensor.dim() == 1)
      weight.tensor.fill_(1);
    else
      weight.tensor.normal_(0, 0.02);
  }
  return model;
}

double num_weights(const Model& model) {
  double all = 0;
  for (const NamedTensor& weight : model.parameters()) all += static_cast<double>(weight.tensor.numel());
  return all;
}

std::vector<TokenId> random_tokens(RandomStream& stream, int length, const Model& model) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; ++i)
    tokens.push_back(static_cast<TokenId>(stream.below(static_cast<std::uint64_t>(model.config().vocab_size))));
  return tokens;
}

/// Seconds of one decoding step of this many sequences at the limit (performance of products and memory).
double decoding_limit(const Settings& settings, const Model& model, int batch, double context) {
  if (settings.bytes_per_second == 0 || settings.flops == 0) return 0;
  const ModelConfig& c = model.config();
  const double n = num_weights(model), cached = 2.0 * c.num_layers * c.num_kv_heads * c.head_dim * 2;
  const double bytes = 2 * n + cached * batch * context;
  const double flops = 2 * n * batch + 4.0 * c.num_layers * c.num_heads * c.head_dim * batch * context;
  return std::max(bytes / settings.bytes_per_second, flops / settings.flops);
}

SampleRequest request(int sequence, int tokens) {
  return {.key = {.seed = 1, .group = static_cast<std::uint64_t>(sequence)}, .max_tokens = tokens};
}

int blocks_for(int sequences, int tokens) { return sequences * (tokens / kBlockTokens + 2); }

Figure decode(const Settings& settings, const std::string& shape, int batch) {
  const Model model = model_of(settings, shape);
  const int prompt = settings.size(512, 16), tokens = settings.size(256, 4);
  batch = settings.size(batch, std::min(batch, 2));
  RandomStream stream(1);
  double best = 1e30;
  for (int round = 0; round < 2; ++round) {
    DecoderRunner runner(model, {.blocks = blocks_for(batch, prompt + tokens), .states = batch});
    Engine engine(runner, {.max_batch_tokens = 16384, .logits_megabytes = 256});
    for (int b = 0; b < batch; ++b)
      engine.sample(engine.start(random_tokens(stream, prompt, model)), request(b, tokens + 1));
    // The prompts come first; what is timed begins when every sequence has its first token.
    for (int first = 0; first < batch;) first += static_cast<int>(engine.step().tokens.size());
    best = std::min(best, seconds_of(settings, [&] {
                      while (engine.has_work()) engine.step();
                    }));
  }
  const double limit = decoding_limit(settings, model, batch, prompt + tokens / 2.0);
  return {.value = batch * tokens / best,
          .unit = "tokens/s",
          .limit = limit > 0 ? batch / limit : 0,
          .note = "sampled, with log-probability, entropy and logsumexp; the better of two"};
}

Figure tree(const Settings& settings) {
  const Model model = model_of(settings, "qwen2.5-0.5b");
  const int prompts = settings.size(16, 2), rollouts = settings.size(16, 2);
  const int prompt = settings.size(4096, 32), tokens = settings.size(512, 4);
  DecoderRunner runner(model, {.blocks = blocks_for(prompts, prompt) + blocks_for(prompts * rollouts, tokens),
                               .states = prompts * (1 + rollouts)});
  Engine engine(runner, {.max_batch_tokens = 16384, .logits_megabytes = 256});
  RandomStream stream(2);
  const double seconds = seconds_of(settings, [&] {
    std::vector<SequenceId> roots;
    for (int p = 0; p < prompts; ++p) roots.push_back(engine.start(random_tokens(stream, prompt, model)));
    while (!std::all_of(roots.begin(), roots.end(), [&](SequenceId root) { return engine.prefilled(root); }))
      engine.step();
    for (int p = 0; p < prompts; ++p)
      for (int r = 0; r < rollouts; ++r)
        engine.sample(engine.fork(roots[static_cast<std::size_t>(p)], prompt), request(p * rollouts + r, tokens));
    while (engine.has_work()) engine.step();
  });
  return {.value = seconds,
          .unit = "s",
          .higher_is_better = false,
          .note = std::to_string(prompts) + " prompts of " + std::to_string(prompt) + ", " + std::to_string(rollouts) +
                  " answers of " + std::to_string(tokens) + " each; prompts computed and kept once; one run"};
}

// ---- token statistics -------------------------------------------------------------------------------------------

enum class Pass { Forward, WithGradient };

Figure statistics(const Settings& settings, int width, Pass pass, double clamp, KernelChoice kernels) {
  const std::int64_t tokens = settings.size(8192, 40), vocabulary = settings.size(151936, 997);
  const std::int64_t columns = settings.small ? 32 : width;
  const bool with_gradient = pass == Pass::WithGradient;
  const at::Tensor hidden = at::randn({tokens, columns}, settings.options(at::kBFloat16)).requires_grad_(with_gradient);
  const at::Tensor head = (at::randn({vocabulary, columns}, hidden.options().requires_grad(false)) * 0.05);
  if (with_gradient) mark_trained(head, true);
  const at::Tensor targets = at::randint(vocabulary, {tokens}, at::kLong);
  const double seconds = best_of_three(settings, [&] {
    const at::AutoGradMode mode(with_gradient);
    const auto s = token_statistics(hidden, head, targets, {.entropy_clamp = clamp, .kernels = kernels});
    if (!with_gradient) return;
    at::Tensor loss = s.entropy_T * 0.1 - s.logprob_T + s.logsumexp_T * 0.01;
    if (clamp > 0) loss = loss + s.clamped_entropy_T * 0.1;
    loss.sum().backward();
    hidden.mutable_grad().reset();
    head.mutable_grad().reset();
  });
  const double flops =
      (with_gradient ? 8.0 : 2.0) * static_cast<double>(tokens * columns) * static_cast<double>(vocabulary);
  return {.value = static_cast<double>(tokens) / seconds,
          .unit = "tokens/s",
          .limit = settings.flops > 0 ? static_cast<double>(tokens) * settings.flops / flops : 0,
          .note = kernels == KernelChoice::Own ? "" : "the same passes by LibTorch's operators: what to compare with"};
}

// ---- measuring and training -------------------------------------------------------------------------------------

Figure information_gain(const Settings& settings) {
  const Model model = model_of(settings, "qwen2.5-1.5b");
  const int trajectories = settings.size(16, 2), turns = settings.size(5, 2), per_turn = settings.size(1000, 8);
  std::vector<SharedContext> contexts;
  std::vector<ForkedAnswer> answers;
  RandomStream stream(4);
  for (int t = 0; t < trajectories; ++t)
    for (int turn = 0; turn < turns; ++turn) {
      contexts.push_back({.parent = turn == 0 ? -1 : static_cast<int>(contexts.size()) - 1,
                          .tokens = random_tokens(stream, per_turn, model)});
      answers.push_back({.context = static_cast<int>(contexts.size()) - 1,
                         .lead = random_tokens(stream, 12, model),
                         .tokens = random_tokens(stream, 20, model)});
    }
  const double seconds = best_of_three(
      settings, [&] { forked_log_probs(model, contexts, answers, {.max_tokens = 16384, .temperature = 1}); });
  return {.value = seconds,
          .unit = "s",
          .higher_is_better = false,
          .note = std::to_string(trajectories) + " trajectories of " + std::to_string(turns * per_turn) + " tokens, " +
                  std::to_string(turns) + " answers each; the contexts are computed, too"};
}

/// Lengths are lognormal around `mean`, at most four times as long.
std::vector<int> lengths(int total, int mean) {
  RandomStream stream(5);
  std::vector<int> all;
  for (int sum = 0; sum < total; sum += all.back())
    all.push_back(
        std::clamp(static_cast<int>(0.8 * mean * std::exp(0.67 * stream.normal())), 4, std::min(4 * mean, total)));
  return all;
}

Figure train(const Settings& settings) {
  Model model = model_of(settings, "qwen2.5-1.5b");
  model.requires_grad(true);
  model.checkpoint_activations(true);
  const int total = settings.size(65536, 60), most = settings.size(8192, 40);
  double tokens_done = 0, attended = 0;
  const auto step = [&] {
    tokens_done = attended = 0;
    RandomStream stream(6);
    std::vector<std::int64_t> tokens, positions, targets;
    PackedAttention plan;
    const auto backward = [&] {
      const auto tensor = [](const std::vector<std::int64_t>& values) { return at::tensor(values, at::kLong); };
      const auto s = token_statistics(model.hidden(tensor(tokens), tensor(positions), plan), model, tensor(targets));
      (s.entropy_T * 0.01 - s.logprob_T).sum().backward();
      tokens.clear(), positions.clear(), targets.clear();
      plan = {};
    };
    for (const int length : lengths(total, settings.size(2000, 20))) {
      if (!tokens.empty() && static_cast<int>(tokens.size()) + length > most) backward();
      for (int p = 0; p < length; ++p) {
        tokens.push_back(random_tokens(stream, 1, model)[0]);
        targets.push_back(random_tokens(stream, 1, model)[0]);
        positions.push_back(p);
      }
      plan.offsets.push_back(static_cast<int>(tokens.size()));
      tokens_done += length;
      attended += static_cast<double>(length) * length;
    }
    backward();
    for (const NamedTensor& weight : model.parameters()) weight.tensor.mutable_grad().reset();
  };
  const double seconds = seconds_of(settings, step);
  const ModelConfig& c = model.config();
  const double flops = 6 * num_weights(model) * tokens_done + 6.0 * c.num_layers * c.num_heads * c.head_dim * attended;
  return {.value = tokens_done / seconds,
          .unit = "tokens/s",
          .limit = settings.flops > 0 ? tokens_done * settings.flops / flops : 0,
          .note =
              "forward and backward, layers computed again in the backward pass (which the limit does not count); "
              "one run, so its first products are in it"};
}

Figure exactness(const Settings& settings) {
  const Model model = model_of(settings, "qwen2.5-0.5b");
  const int batch = settings.size(16, 2), prompt = settings.size(128, 16), tokens = settings.size(64, 4);
  DecoderRunner runner(model, {.blocks = blocks_for(batch, prompt + tokens), .states = batch});
  Engine engine(runner, {.max_batch_tokens = 4096});
  RandomStream stream(7);
  std::vector<SequenceId> sequences;
  for (int b = 0; b < batch; ++b) {
    sequences.push_back(engine.start(random_tokens(stream, prompt, model)));
    engine.sample(sequences.back(), request(b, tokens));
  }
  std::vector<std::vector<float>> sampled(sequences.size());
  while (engine.has_work())
    for (const SampledToken& token : engine.step().tokens)
      sampled[static_cast<std::size_t>(std::find(sequences.begin(), sequences.end(), token.sequence) -
                                       sequences.begin())]
          .push_back(token.draw.log_prob);
  std::vector<MeasuredSequence> measured;
  for (const SequenceId sequence : sequences) {
    const auto all = engine.tokens(sequence);
    measured.push_back({.tokens = {all.begin(), all.end()}});
    for (int t = prompt; t < static_cast<int>(all.size()); ++t) measured.back().targets.push_back(t);
  }
  const std::vector<double> again = measure_targets(model, measured, 4096, 1).log_prob;
  std::size_t next = 0, equal = 0;
  double largest = 0;
  for (const auto& of_sequence : sampled)
    for (const float log_prob : of_sequence) {
      const double difference = std::abs(again[next++] - static_cast<double>(log_prob));
      equal += difference == 0 ? 1 : 0;
      largest = std::max(largest, difference);
    }
  char note[96];
  std::snprintf(note, sizeof note, "sampled against measured again; largest difference %.3g nats", largest);
  return {.value = 100.0 * static_cast<double>(equal) / static_cast<double>(std::max<std::size_t>(1, next)),
          .unit = "% equal bits",
          .note = note};
}

// ---- the table --------------------------------------------------------------------------------------------------

std::vector<Cell> cells() {
  std::vector<Cell> all{{"copy", copy}, {"product", product}, {"operator_call", operator_call}};
  for (const char* shape : {"qwen2.5-0.5b", "qwen2.5-1.5b", "qwen2.5-7b"})
    for (const int batch : {1, 16, 64, 256})
      all.push_back({std::string("decode_") + shape + "_" + std::to_string(batch),
                     [=](const Settings& settings) { return decode(settings, shape, batch); }});
  all.push_back({"tree", tree});
  for (const int width : {896, 1536, 3584})
    for (const auto& [pass, pass_name] :
         {std::pair{Pass::Forward, "forward"}, std::pair{Pass::WithGradient, "gradient"}})
      for (const double clamp : {0.0, 0.3})
        for (const auto& [kernels, by] :
             {std::pair{KernelChoice::Own, ""}, std::pair{KernelChoice::Portable, "_by_operators"}})
          all.push_back({std::string("statistics_") + std::to_string(width) + "_" + pass_name +
                             (clamp > 0 ? "_clamped" : "") + by,
                         [=, pass = pass, kernels = kernels](const Settings& settings) {
                           return statistics(settings, width, pass, clamp, kernels);
                         }});
  all.push_back({"information_gain", information_gain});
  all.push_back({"train", train});
  all.push_back({"exactness", exactness});
  return all;
}

int print(const Cell& cell, const Settings& settings) {
  const Figure figure = cell.measure(settings);
  nlohmann::ordered_json row{{"cell", cell.name},
                             {"value", figure.value},
                             {"unit", figure.unit},
                             {"better", figure.higher_is_better ? "higher" : "lower"}};
  if (figure.limit > 0) {
    row["limit"] = figure.limit;
    row["limit_fraction"] = figure.value / figure.limit;
  }
  row["peak_mebibytes"] = peak_mebibytes(settings);
  row["note"] = figure.note;
  std::printf("%s\n", row.dump().c_str());
  return 0;
}

int run(const std::string& name, const Settings& settings) {
  for (const Cell& cell : cells()) {
    if (name.empty()) std::printf("%s\n", cell.name.c_str());
    if (cell.name != name) continue;
    log_to_console(LogLevel::Warning);
    if (settings.device.is_cuda()) {
      offer_cuda_statistics();
      if (const Status cuda = load_cuda_backend(); !cuda)
        return std::fprintf(stderr, "gpu_bench: %s\n", cuda.error().message.c_str()), 1;
    }
    set_num_threads(static_cast<int>(std::thread::hardware_concurrency()));
    at::set_num_threads(1);
    return print(cell, settings);
  }
  if (!name.empty()) std::fprintf(stderr, "gpu_bench: there is no cell %s\n", name.c_str());
  return name.empty() ? 0 : 2;
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  carnot::Settings settings;
  std::string cell;
  for (int i = 1; i < count; ++i) {
    const std::string word = values[i];
    const bool has_value = i + 1 < count;
    if (word == "--device" && has_value) {
      settings.device = at::Device(values[++i]);
    } else if (word == "--small") {
      settings.small = true;
    } else if (word == "--bytes-per-second" && has_value) {
      settings.bytes_per_second = std::atof(values[++i]);
    } else if (word == "--flops" && has_value) {
      settings.flops = std::atof(values[++i]);
    } else {
      cell = word;
    }
  }
  return carnot::run(cell, settings);
}
