// A model's work on request, for a program that alternates between this and other libraries (bench/peers/models.py).
//
//   model_requests_bench FOLDER [--dtype bfloat16|float32] [--threads N]
//
// FOLDER is a Hugging Face folder: config.json and weights. Reads a JSON object per line and answers each with one,
// until the input ends. Answers hold seconds, on the wall and of the processors (processor_seconds), and the most
// memory that the process held meanwhile (peak_mebibytes).
//
//   {"do": "limits"}                              the best rates of memory and arithmetic here
//   {"do": "log_probs", "tokens": [...]}          log-probability and entropy of each token but the first
//   {"do": "decode", "batch": B, "prompt": P, "tokens": N}
//                                                 B prompts, then N sampled tokens after each
//   {"do": "answers", "prompt": P, "answers": B, "tokens": N}
//                                                 one prompt, computed once, and B answers of N tokens
//   {"do": "train", "lengths": [...], "counted": C, "micro_batch": M}
//                                                 forward and backward over sequences; the loss counts the last C-th
//                                                 part of each; at most M tokens per pass
//   {"do": "statistics", "tokens": T, "gradient": G, "clamp": C}
//                                                 log-probability, entropy and logsumexp of T random rows
//   {"do": "product", "rows": M, "depth": K, "columns": N}
//                                                 a product of matrices in float32
//   {"do": "information_gain", "trajectories": B, "turns": K, "tokens": N, "answer": A}
//                                                 turns of N sampled and N appended tokens, and the log-probability of
//                                                 an answer of A tokens at the end of each
//
// Sampled tokens come with log-probability, entropy and logsumexp. Prompts are random tokens.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/kernel/gemm/gemm.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "machine_limits.h"
#include "model_options.h"
#include "peak_memory.h"
#include "processor_time.h"
#include "random_model.h"

namespace carnot {
namespace {

constexpr int kPassTokens = 8192;

std::vector<TokenId> random_tokens(RandomStream& stream, int length, const Model& model) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; ++i)
    tokens.push_back(static_cast<TokenId>(stream.below(static_cast<std::uint64_t>(model.config().vocab_size))));
  return tokens;
}

SampleRequest request(int sequence, int tokens) {
  return {.key = {.seed = 1, .group = static_cast<std::uint64_t>(sequence)}, .max_tokens = tokens};
}

int blocks_for(int sequences, int tokens) { return sequences * (tokens / kBlockTokens + 2); }

/// For this many sequences at one time; layers with a window have what these see.
CacheSize cache_of(const Model& model, int blocks, int sequences) {
  const std::int64_t in_window = window_blocks_for(model.config().window, sequences, kPassTokens, blocks);
  return {.blocks = blocks, .states = sequences, .window_blocks = static_cast<int>(in_window)};
}

/// Adds the time between two calls to an answer.
class Clock {
 public:
  explicit Clock(Json& answer) : answer_(answer) {}

  /// The seconds since the last call, as PREFIXseconds and PREFIXprocessor_seconds.
  void note(const std::string& prefix = "") {
    const double wall = watch_.seconds(), processors = processor_seconds();
    answer_[prefix + "seconds"] = wall - wall_;
    answer_[prefix + "processor_seconds"] = processors - processors_;
    wall_ = wall, processors_ = processors;
  }

 private:
  Json& answer_;
  Stopwatch watch_;
  double wall_ = 0, processors_ = processor_seconds();
};

Json limits() {
  const std::vector<float> numbers = random_floats(1 << 18);
  return {{"read_gigabytes", reading_speed()},
          {"bfloat16_gigaflops", multiplying_speed_bfloat16(in_bfloat16(numbers))},
          {"float32_gigaflops", multiplying_speed_float32(numbers)}};
}

Json log_probs(const Model& model, const Json& wanted) {
  MeasuredSequence sequence{.tokens = wanted["tokens"].get<std::vector<TokenId>>()};
  for (int t = 1; t < static_cast<int>(sequence.tokens.size()); ++t) sequence.targets.push_back(t);
  const TargetStatistics measured = measure_targets(model, {&sequence, 1}, kPassTokens, 1);
  return {{"log_prob", measured.log_prob}, {"entropy", measured.entropy}};
}

Json decode(const Model& model, const Json& wanted) {
  const int batch = wanted["batch"], prompt = wanted["prompt"], tokens = wanted["tokens"];
  const at::NoGradGuard no_grad;
  DecoderRunner runner(model, cache_of(model, blocks_for(batch, prompt + tokens), batch));
  Engine engine(runner, {.max_batch_tokens = kPassTokens});
  RandomStream stream(1);
  std::vector<SequenceId> sequences;
  for (int b = 0; b < batch; ++b) sequences.push_back(engine.start(random_tokens(stream, prompt, model)));
  Json answer;
  Clock clock(answer);
  // None samples before all prompts are computed, which may take several forwards; the last rows give the first tokens.
  while (engine.has_work()) engine.step();
  for (int b = 0; b < batch; ++b) engine.sample(sequences[static_cast<std::size_t>(b)], request(b, tokens + 1));
  engine.step();
  clock.note("prefill_");
  while (engine.has_work()) engine.step();
  clock.note("decode_");
  return answer;
}

Json answers(const Model& model, const Json& wanted) {
  const int prompt = wanted["prompt"], answers = wanted["answers"], tokens = wanted["tokens"];
  const at::NoGradGuard no_grad;
  DecoderRunner runner(model, cache_of(model, blocks_for(1, prompt) + blocks_for(answers, tokens), 1 + answers));
  Engine engine(runner, {.max_batch_tokens = kPassTokens});
  RandomStream stream(2);
  const auto tokens_of_prompt = random_tokens(stream, prompt, model);
  Json answer;
  Clock clock(answer);
  const SequenceId root = engine.start(tokens_of_prompt);
  while (!engine.prefilled(root)) engine.step();
  for (int a = 0; a < answers; ++a) engine.sample(engine.fork(root, prompt), request(a, tokens));
  while (engine.has_work()) engine.step();
  clock.note();
  return answer;
}

/// Sequences of one forward and backward pass.
struct MicroBatch {
  std::vector<std::int64_t> tokens{}, positions{}, rows{}, targets{};
  PackedAttention plan{};

  void add(RandomStream& stream, int length, double counted, const Model& model) {
    for (const TokenId token : random_tokens(stream, length, model)) {
      const int p = static_cast<int>(tokens.size()) - (plan.offsets.empty() ? 0 : plan.offsets.back());
      if (p >= length - static_cast<int>(counted * length)) {
        rows.push_back(static_cast<std::int64_t>(tokens.size()));
        targets.push_back(token);
      }
      positions.push_back(p);
      tokens.push_back(token);
    }
    plan.offsets.push_back(static_cast<int>(tokens.size()));
  }

  void backward(const Model& model) const {
    const auto tensor = [](const std::vector<std::int64_t>& values) { return at::tensor(values, at::kLong); };
    const at::Tensor hidden = model.hidden(tensor(tokens), tensor(positions), plan);
    const auto statistics = token_statistics(hidden.index_select(0, tensor(rows)), model, tensor(targets));
    (statistics.entropy_T * 0.01 - statistics.logprob_T).sum().backward();
  }
};

Json train(Model& model, const Json& wanted) {
  std::vector<MicroBatch> batches(1);
  RandomStream stream(3);
  for (const int length : wanted["lengths"].get<std::vector<int>>()) {
    const std::size_t held = batches.back().tokens.size();
    if (held > 0 && held + static_cast<std::size_t>(length) > wanted["micro_batch"]) batches.emplace_back();
    batches.back().add(stream, length, wanted["counted"], model);
  }
  model.requires_grad(true);
  Json answer;
  Clock clock(answer);
  for (const MicroBatch& batch : batches) batch.backward(model);
  clock.note();
  for (const NamedTensor& weight : model.parameters()) weight.tensor.mutable_grad().reset();
  model.requires_grad(false);
  return answer;
}

/// beyond_mebibytes: the peak memory besides inputs and outputs. Valid only in a process that has freed nothing before,
/// since freed memory is kept.
Json statistics(const Model& model, const Json& wanted) {
  const std::int64_t tokens = wanted["tokens"];
  const bool gradient = wanted["gradient"];
  const double clamp = wanted["clamp"];
  const at::Tensor head = model.head();
  const at::Tensor hidden = at::randn({tokens, head.size(1)}, head.options().requires_grad(false));
  const at::Tensor targets = at::randint(head.size(0), {tokens}, at::kLong);
  hidden.set_requires_grad(gradient);
  {
    const at::NoGradGuard no_grad;
    model.logits(hidden.detach().narrow(
        0, 0, 1));  // the packed head is part of the model, and exists before a step's first call
  }
  mark_trained(head, gradient);
  const double outputs = gradient ? static_cast<double>(head.numel() * 4 + hidden.nbytes()) / (1 << 20) : 0;
  const double before = status_mebibytes("VmRSS:");
  const at::AutoGradMode mode(gradient);
  Json answer;
  Clock clock(answer);
  const auto s = token_statistics(
      hidden, head, targets, {.entropy_clamp = clamp, .kernels = model.kernels(), .packed = &model.packed_weights()});
  if (gradient) {
    at::Tensor loss = s.entropy_T * 0.1 - s.logprob_T + s.logsumexp_T * 0.01;
    if (clamp > 0) loss = loss + s.clamped_entropy_T * 0.1;
    loss.sum().backward();
  }
  clock.note();
  head.mutable_grad().reset();
  mark_trained(head, false);
  answer["beyond_mebibytes"] = status_mebibytes("VmHWM:") - before - outputs;
  return answer;
}

Json product(const Json& wanted) {
  const std::int64_t rows = wanted["rows"], depth = wanted["depth"], columns = wanted["columns"];
  const std::vector<float> a = random_floats(rows * depth), weights = random_floats(columns * depth);
  std::vector<float> sums(static_cast<std::size_t>(rows * columns));
  const kernel::PackedMatrix<float>::Rows view{weights.data(), columns, depth};
  kernel::PackedMatrix<float> packed;
  packed.pack_transposed({&view, 1}, depth);
  return {{"seconds", fastest([&] {
             kernel::gemm<float>({.data = a.data(), .rows = rows, .row_stride = depth}, packed, sums.data(), columns,
                                 false);
           })}};
}

/// The same rollout without and with answers scored after each turn, alternating: the difference is the cost of gains.
Json information_gain(const Model& model, const Json& wanted) {
  const int trajectories = wanted["trajectories"], turns = wanted["turns"], tokens = wanted["tokens"];
  constexpr int kLeadTokens = 12;
  const int answer_tokens = wanted["answer"];
  const at::NoGradGuard no_grad;
  const int most = (2 * turns + 1) * tokens + kLeadTokens + answer_tokens;
  DecoderRunner runner(model, cache_of(model, blocks_for(trajectories, 2 * most), 2 * trajectories));
  const auto seconds_of = [&](bool scores) {
    Engine engine(runner, {.max_batch_tokens = kPassTokens});
    RandomStream stream(4);
    std::vector<SequenceId> sequences;
    for (int b = 0; b < trajectories; ++b) sequences.push_back(engine.start(random_tokens(stream, tokens, model)));
    const AnswerRequest question{.lead = random_tokens(stream, kLeadTokens, model),
                                 .answer = random_tokens(stream, answer_tokens, model)};
    const Stopwatch watch;
    for (int turn = 0; turn < turns; ++turn) {
      std::vector<bool> asked(sequences.size(), false);
      for (const SequenceId sequence : sequences) engine.sample(sequence, request(static_cast<int>(sequence), tokens));
      while (engine.has_work()) {
        const StepResult& result = engine.step();
        if (!scores) continue;
        for (const SampledToken& sampled : result.tokens) {
          const auto at = std::find(sequences.begin(), sequences.end(), sampled.sequence) - sequences.begin();
          if (asked[at]) continue;
          asked[at] = true;
          engine.score(sampled.sequence, (2 * turn + 1) * tokens, question);
        }
      }
      for (const SequenceId sequence : sequences) engine.append(sequence, random_tokens(stream, tokens, model));
    }
    while (engine.has_work()) engine.step();
    return watch.seconds();
  };
  double without = 0, with = 0;
  constexpr int kRounds = 2;
  for (int round = 0; round < kRounds; ++round) {
    without += seconds_of(false);
    with += seconds_of(true);
  }
  return {{"rollout_seconds", without / kRounds}, {"gain_seconds", (with - without) / kRounds}};
}

Json answer_to(Model& model, const Json& wanted) {
  const std::string what = wanted.value("do", "");
  if (what == "limits") return limits();
  if (what == "log_probs") return log_probs(model, wanted);
  if (what == "decode") return decode(model, wanted);
  if (what == "answers") return answers(model, wanted);
  if (what == "train") return train(model, wanted);
  if (what == "statistics") return statistics(model, wanted);
  if (what == "product") return product(wanted);
  if (what == "information_gain") return information_gain(model, wanted);
  return {{"error", "do: \"" + what + "\" is not one of the requests in bench/model_requests.cpp"}};
}

int serve(const std::string& folder, const std::string& dtype, int threads) {
  keep_freed_memory();
  take_aligned_tensor_memory();
  keep_few_compiled_products();
  set_num_threads(threads);
  at::set_num_threads(1);
  auto model = load_model(folder, at::TensorOptions().dtype(number_type_named(dtype)));
  if (!model) return std::fprintf(stderr, "model_requests_bench: %s\n", model.error().message.c_str()), 1;
  std::printf("%s\n", Json{{"kernels", kernel_sets(number_type_named(dtype))}, {"threads", threads}}.dump().c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    const auto wanted = parse_json_object(line, "request");
    if (!wanted) return std::fprintf(stderr, "model_requests_bench: %s\n", wanted.error().message.c_str()), 1;
    peak_mebibytes_since_last_call();
    Json answer = answer_to(*model, *wanted);
    answer["peak_mebibytes"] = status_mebibytes("VmHWM:");
    std::printf("%s\n", answer.dump().c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  std::string folder, dtype = "bfloat16";
  int threads = static_cast<int>(std::thread::hardware_concurrency());
  carnot::read_model_options(count, values, {.config = folder, .dtype = dtype, .numbers = {{"--threads", &threads}}});
  if (folder.empty()) {
    std::fprintf(stderr, "usage: model_requests_bench FOLDER [--dtype bfloat16|float32] [--threads N]\n");
    return 2;
  }
  return carnot::serve(folder, dtype, threads);
}
