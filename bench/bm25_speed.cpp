// Building an index file and searching it, on one core.
//
//   bm25_bench FOLDER [PASSAGES] [WORDS]
//
// Writes PASSAGES (a million) of WORDS (100) each to FOLDER, drawn from half a million words by Zipf's law; builds the
// index, unless FOLDER has it from before; times queries of eight words whose ranks are drawn evenly on a logarithmic
// scale from the 30th word on (the first are stop words in real text), and queries of eight words of one passage,
// because a question repeats words of its passage; reports wall and processor time.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "carnot/core/base/random.h"
#include "carnot/retrieval/bm25/index_builder.h"
#include "peak_memory.h"

namespace carnot {
namespace {

constexpr double kVocabulary = 500'000;
constexpr int kQueries = 400;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void print_times(const char* what, std::vector<double> times) {
  std::ranges::sort(times);
  double mean = 0;
  for (const double time : times) mean += time / static_cast<double>(times.size());
  std::printf("  %-12s mean %8.3f ms  median %8.3f ms  99%% %8.3f ms\n", what, 1e3 * mean,
              1e3 * times[times.size() / 2], 1e3 * times[times.size() * 99 / 100]);
}

/// A word whose rank is drawn by Zipf's law from `first` on.
std::string zipf_word(RandomStream& random, double first) {
  const double rank = first * std::pow(kVocabulary / first, random.uniform());
  return "w" + std::to_string(static_cast<int>(rank));
}

void write_passages(const std::filesystem::path& file, std::int64_t passages, int words) {
  RandomStream random(1);
  std::ofstream out(file);
  std::string line;
  for (std::int64_t i = 0; i < passages; ++i) {
    line = "{\"id\": \"" + std::to_string(i) + "\", \"contents\": \"\\\"" + zipf_word(random, 1000) + "\\\"\\n";
    for (int j = 0; j < words; ++j) line += zipf_word(random, 1) + (j + 1 < words ? " " : "");
    out << line << "\"}\n";
  }
}

void time_queries(const Bm25File& index, const char* what, const auto& query) {
  std::vector<double> clock, processor;
  double sum = 0;
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < kQueries; ++i) {
      RandomStream random(derive_seed(7, "query", static_cast<std::uint64_t>(i)));
      const std::string text = query(random);
      const double begin = seconds_now(), processor_begin = processor_seconds();
      for (const SearchHit& hit : index.search(text, 3)) sum += hit.score;
      if (round == 0) continue;
      processor.push_back(processor_seconds() - processor_begin);
      clock.push_back(seconds_now() - begin);
    }
  std::printf("%s (checksum %.3f)\n", what, sum);
  print_times("clock", std::move(clock));
  print_times("processor", std::move(processor));
}

int run(int argc, char** argv) {
  if (argc < 2) return std::fprintf(stderr, "bm25_bench FOLDER [PASSAGES] [WORDS]\n"), 2;
  const std::filesystem::path folder = argv[1];
  const std::int64_t passages = argc > 2 ? std::atoll(argv[2]) : 1'000'000;
  const int words = argc > 3 ? std::atoi(argv[3]) : 100;
  std::filesystem::create_directories(folder);
  const auto source = folder / ("passages_" + std::to_string(passages) + "_" + std::to_string(words) + ".jsonl");
  if (!std::filesystem::exists(source)) write_passages(source, passages, words);
  const double million = static_cast<double>(passages) / 1e6;

  double begin = seconds_now();
  const double processor_begin = processor_seconds();
  const auto index = open_or_build_index(source, {});
  const double wall = seconds_now() - begin, processor = processor_seconds() - processor_begin;
  if (!index) return std::fprintf(stderr, "%s\n", index.error().message.c_str()), 1;
  const double gigabytes = static_cast<double>((*index)->bytes()) / 1e9;
  std::printf("%lld passages, %lld words, %.2f GB\n", static_cast<long long>((*index)->num_passages()),
              static_cast<long long>((*index)->num_terms()),
              static_cast<double>(std::filesystem::file_size(source)) / 1e9);
  std::printf("built or opened in %.1f s, %.1f s of the processor, %.1f a million; %.2f GB, %.2f a million\n", wall,
              processor, processor / million, gigabytes, gigabytes / million);
  std::printf("at most %.2f GB of memory\n", peak_gigabytes());
  begin = seconds_now();
  const auto again = open_or_build_index(source, {});
  std::printf("opened again in %.2f ms\n", 1e3 * (seconds_now() - begin));

  time_queries(**index, "eight words from rank 30 on", [](RandomStream& random) {
    std::string query;
    for (int i = 0; i < 8; ++i) query += zipf_word(random, 30) + " ";
    return query;
  });
  time_queries(**index, "eight words of one passage", [&](RandomStream& random) {
    const auto number = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(passages)));
    const std::string text((*index)->passage(number).contents);
    const auto middle = std::min(text.find(' ', text.size() / 2), text.size());
    std::size_t end = middle;
    for (int i = 0; i < 8 && end != std::string::npos; ++i) end = text.find(' ', end + 1);
    return text.substr(middle, end - middle);
  });
  return 0;
}

}  // namespace
}  // namespace carnot

int main(int argc, char** argv) { return carnot::run(argc, argv); }
