// Search by the vectors of a sentence encoder, on one core.
//
//   dense_bench MODEL PASSAGES.jsonl QUESTIONS.jsonl [ROWS [GRAPH_ROWS]]
//
// Times encoding; makes the vectors and the graph of PASSAGES, next to it, unless they exist; asks each `question` of
// QUESTIONS exactly, by the graph and by BM25, and counts the `gold_titles` among the five best; then does the same
// with ROWS vectors that are sums of two passages' and noise, and a graph of the first GRAPH_ROWS of them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/random.h"
#include "carnot/core/hf/sentence_encoder_folder.h"
#include "carnot/retrieval/bm25/index_builder.h"
#include "carnot/retrieval/dense/dense_retriever.h"
#include "carnot/retrieval/dense/nearest_graph.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using Vectors = std::vector<std::vector<float>>;

constexpr int kBest = 10;
constexpr std::size_t kTitlesAmong = 5;
constexpr std::size_t kTimedPassages = 320;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Question {
  std::string text{};
  std::vector<std::string> titles{};
};

std::vector<Question> read_questions(const fs::path& file) {
  std::vector<Question> questions;
  const std::string text = read_maybe_compressed(file).value();
  for (const std::string_view line : split_lines(text)) {
    const Json row = parse_json_object(line, file.string()).value();
    Question& question = questions.emplace_back();
    question.text = row.at("question").get<std::string>();
    if (row.contains("gold_titles")) question.titles = row.at("gold_titles").get<std::vector<std::string>>();
  }
  return questions;
}

/// Calls `one` for each question twice, the second time with a clock.
template <class One>
void time_each(const char* what, std::size_t count, const One& one) {
  std::vector<double> times;
  for (int round = 0; round < 2; ++round)
    for (std::size_t i = 0; i < count; ++i) {
      const double begin = seconds_now();
      one(i);
      if (round > 0) times.push_back(1e3 * (seconds_now() - begin));
    }
  double mean = 0;
  for (const double time : times) mean += time / static_cast<double>(times.size());
  std::ranges::sort(times);
  std::printf("%-42s mean %8.3f ms  median %8.3f ms  99%% %8.3f ms\n", what, mean, times[times.size() / 2],
              times[times.size() * 99 / 100]);
}

void time_encoding(const SentenceEncoderFolder& encoder, const Bm25File& index,
                   const std::vector<Question>& questions) {
  std::vector<std::string> texts;
  std::size_t tokens = 0;
  const auto count = std::min<std::int64_t>(kTimedPassages, index.num_passages());
  for (std::int64_t i = 0; i < count; ++i) {
    texts.emplace_back(index.passage(i).contents);
    tokens += encoder.tokenizer.encode(texts.back(), static_cast<std::size_t>(encoder.max_tokens)).size();
  }
  encoder.encode(std::span(texts).first(1));
  const double begin = seconds_now();
  encoder.encode(texts);
  const double seconds = seconds_now() - begin;
  std::printf("encoded %zu passages of %.0f tokens: %.1f passages a second, %.0f tokens a second\n", texts.size(),
              static_cast<double>(tokens) / static_cast<double>(texts.size()),
              static_cast<double>(texts.size()) / seconds, static_cast<double>(tokens) / seconds);
  time_each("a question's vector", questions.size(),
            [&](std::size_t i) { encoder.encode(std::vector{questions[i].text}); });
}

std::vector<SearchHit> asked(const VectorFile& vectors, const std::vector<float>& query) {
  static ThreadPool one_thread(1);
  return vectors.search({&query, 1}, kBest, one_thread).at(0);
}

/// Exact search, the graph's, and how much of the first the second finds.
void time_searches(const VectorFile& vectors, const Vectors& queries, const fs::path& graph_file,
                   std::shared_ptr<const VectorFile> in_graph) {
  std::printf("%lld vectors of %d numbers, %.2f GB\n", static_cast<long long>(vectors.num_rows()), vectors.dimensions(),
              4e-9 * static_cast<double>(vectors.num_rows()) * vectors.dimensions());
  time_each("exact search", queries.size(), [&](std::size_t i) { asked(vectors, queries[i]); });
  const bool is_there = fs::exists(graph_file);
  const double begin = seconds_now();
  const auto graph = NearestGraph::open_or_build(graph_file, in_graph).value();
  std::printf("graph of %lld rows %s in %.1f s, %.2f GB\n", static_cast<long long>(in_graph->num_rows()),
              is_there ? "read" : "built", seconds_now() - begin,
              1e-9 * static_cast<double>(fs::file_size(graph_file)));
  time_each("search of the graph", queries.size(), [&](std::size_t i) { graph->search(queries[i], kBest); });
  int found = 0, all = 0;
  for (const auto& query : queries) {
    const auto exact = asked(*in_graph, query), approximate = graph->search(query, kBest);
    all += static_cast<int>(exact.size());
    for (const SearchHit& hit : exact) found += std::ranges::count(approximate, hit) > 0 ? 1 : 0;
  }
  std::printf("the graph finds %d of the %d best, %.4f\n", found, all, static_cast<double>(found) / all);
}

/// Share of the gold titles that are among the five best passages.
void count_titles(const char* what, const Bm25File& index, const std::vector<Question>& questions,
                  const std::function<std::vector<SearchHit>(std::size_t)>& search) {
  int found = 0, all = 0;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    std::vector<std::string> titles;
    for (const SearchHit& hit : search(i)) {
      const std::string_view contents = index.passage(hit.document).contents;
      if (titles.size() < kTitlesAmong) titles.emplace_back(contents.substr(1, contents.find('\n') - 2));
    }
    for (const std::string& title : questions[i].titles) {
      ++all;
      found += std::ranges::count(titles, title) > 0 ? 1 : 0;
    }
  }
  if (all > 0) std::printf("%s: %d of %d gold titles among the %zu best\n", what, found, all, kTitlesAmong);
}

std::shared_ptr<const VectorFile> synthetic(const fs::path& file, const VectorFile& from, std::int64_t rows) {
  if (!fs::exists(file)) {
    auto writer = VectorFileWriter::open(file, from.dimensions(), 1).value();
    for (std::int64_t i = writer.num_rows(); i < rows; ++i) {
      RandomStream random(derive_seed(1, "row", static_cast<std::uint64_t>(i)));
      const auto one_of = [&] {
        return from.row(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(from.num_rows()))));
      };
      const auto first = one_of(), second = one_of();
      const double noise = 0.5 / std::sqrt(from.dimensions());
      std::vector<float> row;
      double square = 0;
      for (std::size_t j = 0; j < first.size(); ++j) {
        row.push_back(first[j] + second[j] + static_cast<float>(noise * (2 * random.uniform() - 1)));
        square += double{row.back()} * double{row.back()};
      }
      for (float& value : row) value = static_cast<float>(double{value} / std::sqrt(square));
      if (!writer.add(row).ok()) std::abort();
    }
    if (!writer.finish().ok()) std::abort();
  }
  return VectorFile::open(file).value();
}

int run(int argc, char** argv) {
  if (argc < 4) return std::fprintf(stderr, "dense_bench MODEL PASSAGES QUESTIONS [ROWS [GRAPH_ROWS]]\n"), 2;
  log_to_console(LogLevel::Info);
  const fs::path passages = argv[2], index_file = index_path_of(passages);
  const auto encoder = load_sentence_encoder(argv[1]).value();
  const auto questions = read_questions(argv[3]);
  const auto index = open_or_build_index(passages, {}).value();
  time_encoding(encoder, *index, questions);

  const double begin = seconds_now();
  const auto opened =
      open_dense_retriever(index, index_file,
                           {.encode = [&](std::span<const std::string> texts) { return encoder.encode(texts); },
                            .dimensions = encoder.dimensions(),
                            .mark = encoder.mark},
                           {});
  if (!opened) return std::fprintf(stderr, "%s\n", opened.error().message.c_str()), 1;
  std::printf("vectors of %lld passages made or opened in %.1f s\n", static_cast<long long>(index->num_passages()),
              seconds_now() - begin);
  const auto vectors = VectorFile::open(vectors_path_of(index_file)).value();
  std::vector<std::string> texts;
  for (const Question& question : questions) texts.push_back(question.text);
  const Vectors queries = encoder.encode(texts);
  time_searches(*vectors, queries, graph_path_of(index_file), vectors);
  count_titles("vectors", *index, questions, [&](std::size_t i) { return asked(*vectors, queries[i]); });
  count_titles("BM25", *index, questions, [&](std::size_t i) { return index->search(texts[i], kBest); });

  if (argc < 5) return 0;
  const std::int64_t rows = std::atoll(argv[4]), graph_rows = argc > 5 ? std::atoll(argv[5]) : rows;
  const auto name = [&](std::int64_t count) { return index_file.string() + ".synthetic" + std::to_string(count); };
  const auto many = synthetic(name(rows), *vectors, rows);
  time_searches(*many, queries, name(graph_rows) + ".graph", synthetic(name(graph_rows), *vectors, graph_rows));
  return 0;
}

}  // namespace
}  // namespace carnot

int main(int argc, char** argv) { return carnot::run(argc, argv); }
