// Every fuzz target runs on its corpus and a fixed number of seeded mutations of it; CARNOT_FUZZ_FACTOR=50 in the
// environment makes it 50 times as many. libFuzzer goes further: see CMakeLists.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "testing/paths.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(adapter_config);
CARNOT_FUZZ_TARGET(alfworld_game);
CARNOT_FUZZ_TARGET(bm25_index);
CARNOT_FUZZ_TARGET(calculator);
CARNOT_FUZZ_TARGET(chat_answer);
CARNOT_FUZZ_TARGET(command_line);
CARNOT_FUZZ_TARGET(dataset_rows);
CARNOT_FUZZ_TARGET(demonstrations);
CARNOT_FUZZ_TARGET(environment_replies);
CARNOT_FUZZ_TARGET(generation_config);
CARNOT_FUZZ_TARGET(gguf);
CARNOT_FUZZ_TARGET(group_bytes);
CARNOT_FUZZ_TARGET(http_input);
CARNOT_FUZZ_TARGET(http_request);
CARNOT_FUZZ_TARGET(imported_rollouts);
CARNOT_FUZZ_TARGET(input_lines);
CARNOT_FUZZ_TARGET(launcher_variables);
CARNOT_FUZZ_TARGET(manifest);
CARNOT_FUZZ_TARGET(maths_answer);
CARNOT_FUZZ_TARGET(mcp_messages);
CARNOT_FUZZ_TARGET(method_list);
CARNOT_FUZZ_TARGET(metrics);
CARNOT_FUZZ_TARGET(model_config);
CARNOT_FUZZ_TARGET(openai_requests);
CARNOT_FUZZ_TARGET(passages);
CARNOT_FUZZ_TARGET(process_answers);
CARNOT_FUZZ_TARGET(pythonic_calls);
CARNOT_FUZZ_TARGET(recipe);
CARNOT_FUZZ_TARGET(retrieval);
CARNOT_FUZZ_TARGET(rollout_rows);
CARNOT_FUZZ_TARGET(run_code);
CARNOT_FUZZ_TARGET(safetensors);
CARNOT_FUZZ_TARGET(split_pattern);
CARNOT_FUZZ_TARGET(swe_formats);
CARNOT_FUZZ_TARGET(task_rows);
CARNOT_FUZZ_TARGET(tinker_requests);
CARNOT_FUZZ_TARGET(tokenizer);
CARNOT_FUZZ_TARGET(tool_calls);
CARNOT_FUZZ_TARGET(trainer_state);
CARNOT_FUZZ_TARGET(vector_file);
CARNOT_FUZZ_TARGET(vocab_merges);
CARNOT_FUZZ_TARGET(web_answers);
CARNOT_FUZZ_TARGET(web_pages);
CARNOT_FUZZ_TARGET(webshop_products);
CARNOT_FUZZ_TARGET(weight_index);
CARNOT_FUZZ_TARGET(word_piece);
CARNOT_FUZZ_TARGET(worker_messages);
CARNOT_FUZZ_TARGET(xz);

namespace carnot {
namespace {

struct Target {
  std::string name;
  int (*one_input)(const std::uint8_t*, std::size_t);
  int mutations;
};

constexpr int kInMemory = 400;
constexpr int kThroughFiles = 60;  // a file is written, and some are synced, for each

#define CARNOT_TARGET(name, mutations) {#name, name##_fuzz_one_input, mutations}

int mutation_factor() {
  const char* factor = std::getenv("CARNOT_FUZZ_FACTOR");
  return factor == nullptr ? 1 : std::max(1, std::atoi(factor));
}

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {CARNOT_TARGET(adapter_config, kInMemory),
                                          CARNOT_TARGET(alfworld_game, kInMemory),
                                          CARNOT_TARGET(bm25_index, kThroughFiles),
                                          CARNOT_TARGET(calculator, kInMemory),
                                          CARNOT_TARGET(chat_answer, kInMemory),
                                          CARNOT_TARGET(command_line, kInMemory),
                                          CARNOT_TARGET(dataset_rows, kInMemory),
                                          CARNOT_TARGET(demonstrations, kInMemory),
                                          CARNOT_TARGET(environment_replies, kInMemory),
                                          CARNOT_TARGET(generation_config, kInMemory),
                                          CARNOT_TARGET(gguf, kInMemory),
                                          CARNOT_TARGET(group_bytes, kInMemory),
                                          CARNOT_TARGET(http_input, kInMemory),
                                          CARNOT_TARGET(http_request, kInMemory),
                                          CARNOT_TARGET(imported_rollouts, kInMemory),
                                          CARNOT_TARGET(input_lines, kInMemory),
                                          CARNOT_TARGET(launcher_variables, kInMemory),
                                          CARNOT_TARGET(manifest, kThroughFiles),
                                          CARNOT_TARGET(maths_answer, kInMemory),
                                          CARNOT_TARGET(mcp_messages, kInMemory),
                                          CARNOT_TARGET(method_list, kInMemory),
                                          CARNOT_TARGET(metrics, kThroughFiles),
                                          CARNOT_TARGET(model_config, kInMemory),
                                          CARNOT_TARGET(openai_requests, kInMemory),
                                          CARNOT_TARGET(passages, kInMemory),
                                          CARNOT_TARGET(process_answers, kInMemory),
                                          CARNOT_TARGET(pythonic_calls, kInMemory),
                                          CARNOT_TARGET(recipe, kInMemory),
                                          CARNOT_TARGET(retrieval, kInMemory),
                                          CARNOT_TARGET(rollout_rows, kInMemory),
                                          CARNOT_TARGET(run_code, kInMemory),
                                          CARNOT_TARGET(safetensors, kInMemory),
                                          CARNOT_TARGET(split_pattern, kInMemory),
                                          CARNOT_TARGET(swe_formats, kInMemory),
                                          CARNOT_TARGET(task_rows, kInMemory),
                                          CARNOT_TARGET(tinker_requests, kInMemory),
                                          CARNOT_TARGET(tokenizer, kInMemory),
                                          CARNOT_TARGET(tool_calls, kInMemory),
                                          CARNOT_TARGET(trainer_state, kInMemory),
                                          CARNOT_TARGET(vector_file, kThroughFiles),
                                          CARNOT_TARGET(vocab_merges, kThroughFiles),
                                          CARNOT_TARGET(web_answers, kInMemory),
                                          CARNOT_TARGET(web_pages, kInMemory),
                                          CARNOT_TARGET(webshop_products, kInMemory),
                                          CARNOT_TARGET(weight_index, kInMemory),
                                          CARNOT_TARGET(word_piece, kInMemory),
                                          CARNOT_TARGET(worker_messages, kInMemory),
                                          CARNOT_TARGET(xz, kThroughFiles)};
  return all;
}

std::vector<std::string> corpus_of(const std::string& target) {
  const std::string folder =
      source_path(target == "tokenizer" ? "tests/golden/tokenizer" : "tests/fuzz/corpus/" + target);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_regular_file()) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) corpus.push_back(read_file(path).value());
  return corpus;
}

/// Words that matter to parsers.
const std::vector<std::string>& telling_words() {
  static const std::vector<std::string> words = {
      "[",  "]",     "{",   "}",  "\"",       "\\",     ",",   ":",          "null", "true",
      "-1", "1e999", "NaN", "\n", "\xff\xfe", "\xc3",   " + ", "<|im_end|>", "=",    "--",
      "\t", "#",     "*",   "&",  "1e18",     "(a+)+$", "../", "\\ud800",    "0",    "18446744073709551616"};
  return words;
}

std::size_t place(RandomStream& random, const std::string& text) { return random.below(text.size() + 1); }

void mutate_once(RandomStream& random, const std::vector<std::string>& corpus, std::string& text) {
  const std::size_t at = place(random, text);
  const std::size_t length = random.below(std::min<std::size_t>(text.size() - at, 32) + 1);
  switch (random.below(7)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(random.below(256));
      break;
    case 1: text.erase(at, length); break;
    case 2: text.insert(at, text.substr(at, length)); break;
    case 3: text.insert(at, telling_words()[random.below(telling_words().size())]); break;
    case 4: text.resize(at); break;
    case 5: text.insert(at, std::string(random.below(300), text.empty() ? '[' : text[at % text.size()])); break;
    default: {
      const std::string& other = corpus[random.below(corpus.size())];
      const std::size_t from = place(random, other);
      text.insert(at, other.substr(from, random.below(64)));
    }
  }
}

class FuzzTargets : public ::testing::TestWithParam<Target> {};

INSTANTIATE_TEST_SUITE_P(All, FuzzTargets, ::testing::ValuesIn(targets()),
                         [](const auto& target) { return target.param.name; });

TEST_P(FuzzTargets, PassOnTheirCorpusAndOnSeededMutationsOfIt) {
  const auto run = [&](const std::string& input) {
    GetParam().one_input(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  };
  const std::vector<std::string> corpus = corpus_of(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  for (const std::string& input : corpus) run(input);
  for (int i = 0; i < GetParam().mutations * mutation_factor(); ++i) {
    RandomStream random(static_cast<std::uint64_t>(i));
    std::string input = corpus[random.below(corpus.size())];
    for (std::uint64_t k = 0, count = 1 + random.below(6); k < count; ++k) mutate_once(random, corpus, input);
    ASSERT_NO_THROW(run(input)) << "mutation " << i;
  }
}

TEST(FuzzTargetTable, HasEveryTargetOfTheFolder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/fuzz")))
    if (const std::string name = entry.path().filename(); name.ends_with("_fuzz.cpp"))
      names.push_back(name.substr(0, name.size() - std::string_view("_fuzz.cpp").size()));
  std::sort(names.begin(), names.end());
  std::vector<std::string> listed;
  for (const Target& target : targets()) listed.push_back(target.name);
  EXPECT_EQ(listed, names);
}

}  // namespace
}  // namespace carnot
