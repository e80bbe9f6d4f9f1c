// Tokens per second of the server with 32 parallel clients, next to `carnot generate` with the same prompts.
//
//   serve_bench MODEL_FOLDER [TOKENS]
//
// 64 prompts of 16 to 128 random token ids, TOKENS (64) sampled after each, 32 at a time: by the command's own
// function, by clients that wait for whole answers, and by clients that read a stream. Three rounds; the median of
// each.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "carnot/core/base/aligned_memory.h"
#include "carnot/core/base/random.h"
#include "carnot/http/client.h"
#include "carnot/http/server.h"
#include "carnot/serving/generator.h"
#include "carnot/serving/openai_api.h"

namespace carnot {
namespace {

constexpr int kClients = 32;
constexpr std::size_t kPrompts = 64;
constexpr int kRounds = 3;

using Prompts = std::vector<std::vector<TokenId>>;

Prompts random_prompts(int vocab_size) {
  RandomStream random(1);
  Prompts prompts(kPrompts);
  for (auto& prompt : prompts)
    for (std::uint64_t length = 16 + random.below(113); length > 0; --length)
      prompt.push_back(static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocab_size))));
  return prompts;
}

/// Tokens per second that `sample` samples.
double speed(const std::function<std::int64_t()>& sample) {
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t tokens = sample();
  return static_cast<double>(tokens) / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::int64_t generated(const LoadedModel& model, const Prompts& prompts, int tokens) {
  std::int64_t sampled = 0;
  GenerateEvents events;
  events.on_text = [&](const GeneratedText& text) {
    sampled += static_cast<std::int64_t>(text.draws.size());
    return true;
  };
  generate(*model.model, *model.tokenizer, prompts,
           {.sampling = {.temperature = 1}, .max_tokens = tokens, .batch = kClients}, events);
  return sampled;
}

std::int64_t served(int port, const Prompts& prompts, int tokens, bool stream) {
  const Url url = parse_url("http://127.0.0.1:" + std::to_string(port) + "/v1/completions").value();
  std::atomic<std::size_t> next = 0;
  std::atomic<std::int64_t> sampled = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client)
    clients.emplace_back([&] {
      for (std::size_t i = next++; i < prompts.size(); i = next++) {
        nlohmann::json body{{"prompt", prompts[i]}, {"temperature", 1}, {"seed", i}, {"max_tokens", tokens}};
        if (stream) body["stream"] = true;
        if (stream) body["stream_options"] = {{"include_usage", true}};
        std::string answer;
        const auto result =
            http_stream({.method = "POST", .url = url, .body = body.dump()}, {.time = std::chrono::hours(1)},
                        [&](const HttpAnswer&, std::string_view piece) {
                          answer.append(piece);
                          return true;
                        });
        const std::size_t count = answer.rfind("\"completion_tokens\":");
        if (!result || !result->is_success() || count == std::string::npos) {
          std::fprintf(stderr, "%s\n", result ? answer.c_str() : result.error().message.c_str());
          std::exit(1);
        }
        sampled += std::atoll(answer.c_str() + count + 20);
      }
    });
  for (std::thread& client : clients) client.join();
  return sampled;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int measure(const char* folder, int tokens) {
  keep_freed_memory();
  const auto model = load_for_generation({.path = folder});
  if (!model) {
    std::fprintf(stderr, "%s\n", model.error().message.c_str());
    return 1;
  }
  const Prompts prompts = random_prompts(model->tokenizer->vocab_size());
  TextService service(*model->model, *model->tokenizer, {.batch = kClients});
  OpenAiApi api(*model, service, "m", 1);
  const auto server = HttpServer::start(
      {}, [&](const HttpCall& call, const HttpConnection& connection) { return api.answer(call, connection); });
  const int port = server.value()->port();
  std::vector<double> alone, whole, streamed;
  for (int round = 0; round < kRounds; ++round) {
    alone.push_back(speed([&] { return generated(*model, prompts, tokens); }));
    whole.push_back(speed([&] { return served(port, prompts, tokens, false); }));
    streamed.push_back(speed([&] { return served(port, prompts, tokens, true); }));
  }
  const double base = median(alone);
  std::printf("%-24s %10s %8s\n", "", "tokens/s", "of it");
  std::printf("%-24s %10.1f %7.1f%%\n", "generate", base, 100.0);
  std::printf("%-24s %10.1f %7.1f%%\n", "serve, whole answers", median(whole), 100 * median(whole) / base);
  std::printf("%-24s %10.1f %7.1f%%\n", "serve, streams", median(streamed), 100 * median(streamed) / base);
  return 0;
}

}  // namespace
}  // namespace carnot

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "serve_bench MODEL_FOLDER [TOKENS]\n");
    return 2;
  }
  return carnot::measure(argv[1], argc > 2 ? std::atoi(argv[2]) : 64);
}
