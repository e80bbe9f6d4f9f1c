#include <algorithm>
#include <iterator>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/env/epoch_order.h"
#include "carnot/core/env/played_texts.h"
#include "carnot/retrieval/dense/dense_retriever.h"
#include "carnot/worlds/open_qa/environment.h"
#include "carnot/worlds/search_qa/protocol.h"
#include "carnot/worlds/task_rows/task_rows.h"

namespace carnot {
namespace {

constexpr std::int64_t kQaTokenizerEpisodes = 64;

/// Searches for the question, then says a right answer, in the tags of the protocol.
class OneSearchAgent final : public ScriptedAgent {
 public:
  OneSearchAgent(QaProtocol protocol, std::string question, std::string answer)
      : protocol_(protocol), question_(std::move(question)), answer_(std::move(answer)) {}

  PolicyResponse respond(std::string_view) override {
    if (!std::exchange(searched_, true)) return "<think>I search for it.</think> <search> " + question_ + " </search>";
    const std::string answer = protocol_ == QaProtocol::Arpo ? "\\boxed{" + answer_ + "}" : answer_;
    return "<think>I have found it.</think> <answer> " + answer + " </answer>";
  }

 private:
  QaProtocol protocol_;
  std::string question_;
  std::string answer_;
  bool searched_ = false;
};

class OpenQaFactory final : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    auto world = std::make_shared<OpenQaWorld>();
    std::vector<std::string> problems;
    const auto note = [&](const Status& status) {
      if (!status) problems.push_back(status.error().message);
    };
    world->options = options_;
    note(read_questions(*world));
    note(open_passages(*world));
    if (!problems.empty()) return join_errors(problems);
    order_ = std::make_unique<EpochOrder>(world->train.size(), seed, "open_qa_epochs");
    world_ = std::move(world);
    return Done{};
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    return make_open_qa_episode(world_, row(split, index));
  }

  std::int64_t num_training_tasks() const override { return std::ssize(world_->train); }
  std::int64_t num_validation_tasks() const override { return std::ssize(world_->test); }

  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double, RandomStream) const override {
    const auto golds = environment.ground_truth();
    return std::make_unique<OneSearchAgent>(options_.protocol, environment.info().at("question"), golds.front());
  }

  std::string answer_lead() const override {
    return options_.protocol == QaProtocol::Arpo ? "<answer> \\boxed{" : "<answer> ";
  }

  std::vector<std::string> tokenizer_texts() const override {
    constexpr std::size_t kQuestions = 2000;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < std::min(world_->train.size(), kQuestions); ++i)
      texts.push_back(world_->train[i].question + "\n" + world_->train[i].answers.front());
    try {
      for (std::int64_t index = 0; index < kQaTokenizerEpisodes; ++index) add_episode(index, texts);
    } catch (const RetrieverFailure& failure) {
      log_info(std::string("the tokenizer is made without passages: ") + failure.what());
    }
    return texts;
  }

  std::vector<std::string> tokenizer_added_tokens() const override {
    if (options_.protocol == QaProtocol::Arpo) return search_protocol_tokens();
    return {"<think>", "</think>", "<search>", "</search>", "<information>", "</information>", "<answer>", "</answer>"};
  }

 private:
  void add_episode(std::int64_t index, std::vector<std::string>& texts) const {
    const auto environment = make(Split::Train, index);
    const Opening opening = environment->open();
    texts.push_back(opening.system);
    texts.push_back(opening.user);
    const auto agent = script(*environment, 1, RandomStream(static_cast<std::uint64_t>(index)));
    std::ranges::move(played_texts(*environment, *agent), std::back_inserter(texts));
  }

  const DatasetRow& row(Split split, std::int64_t index) const {
    CARNOT_CHECK(world_ != nullptr, "prepare() has not been called");
    CARNOT_CHECK_GE(index, 0);
    if (split == Split::Train) return world_->train[order_->row(index)];
    return world_->test[static_cast<std::size_t>(index) % world_->test.size()];
  }

  /// The file that a key names, or the one of that stem in task_source; empty if there is neither.
  std::string file_of(const std::string& named, const std::string& stem) const {
    if (!named.empty() || options_.task_source.empty()) return named;
    const auto found = find_task_file(options_.task_source, stem);
    return found ? found->string() : "";
  }

  Status read_questions(OpenQaWorld& world) const {
    const std::string train = file_of(options_.train_file, "train"), test = file_of(options_.test_file, "test");
    if (train.empty() && test.empty())
      return Error{
          "env.train_file: names no file; expected one of questions, or env.task_source: a folder with "
          "train.jsonl or test.jsonl (docs/open_qa.md)"};
    const DatasetColumns columns{.question = options_.question, .answer = options_.answer};
    const auto read = [&](const std::string& file, std::vector<DatasetRow>& rows) -> Status {
      CARNOT_ASSIGN_OR_RETURN(auto found, read_dataset(file, columns));
      for (std::size_t i = 0; i < found.size(); ++i) {
        split_joined_answers(found[i]);
        if (found[i].answers.empty())
          return Error{file + ": row " + std::to_string(i + 1) + ": expected an answer that is not empty"};
      }
      rows = std::move(found);
      return Done{};
    };
    if (!train.empty()) CARNOT_RETURN_IF_ERROR(read(train, world.train));
    if (!test.empty()) CARNOT_RETURN_IF_ERROR(read(test, world.test));
    if (world.test.empty()) world.test = world.train;
    if (world.train.empty()) world.train = world.test;
    return Done{};
  }

  Status open_passages(OpenQaWorld& world) const {
    const std::string where = file_of(options_.retriever, "passages");
    if (where.empty())
      return Error{
          "env.retriever: names neither passages nor a server; expected a file, an index (.bm25) or "
          "http://HOST:PORT, or env.task_source: a folder with passages.jsonl (docs/open_qa.md)"};
    CARNOT_ASSIGN_OR_RETURN(auto retriever, options_.encoder.empty() ? open_by_words(where) : open_by_vectors(where));
    world.retriever = std::move(retriever);
    return Done{};
  }

  IndexBuildOptions index_options() const {
    return {.words = options_.index_words, .k1 = options_.k1, .b = options_.b, .threads = options_.index_threads};
  }

  static OnIndexProgress index_progress(const std::string& where) {
    return [where, reported = std::uint64_t{0}](const IndexProgress& now) mutable {
      constexpr std::uint64_t kEvery = 1'000'000;
      if (now.passages / kEvery > reported)
        log_info("index of " + where + ": " + std::to_string(now.passages) + " passages");
      reported = now.passages / kEvery;
      return true;
    };
  }

  Result<std::shared_ptr<const Retriever>> open_by_words(const std::string& where) const {
    if (options_.approximate || !options_.query_prefix.empty() || !options_.passage_prefix.empty())
      return Error{"env.approximate, env.query_prefix and env.passage_prefix: expected env.encoder too"};
    auto retriever = open_retriever(where, index_options(), index_progress(where));
    if (!retriever) return Error{"env.retriever: " + retriever.error().message};
    return retriever;
  }

  Result<std::shared_ptr<const Retriever>> open_by_vectors(const std::string& where) const {
    if (is_server(where))
      return Error{"env.encoder: expected none, since the server " + where + " searches as it was started"};
    auto encoder = open_text_encoder(options_.encoder);
    if (!encoder) return Error{"env.encoder: " + encoder.error().message};
    const auto index = open_or_build_index(where, index_options(), index_progress(where));
    if (!index) return Error{"env.retriever: " + index.error().message};
    auto retriever =
        open_dense_retriever(*index, index_path_of(where), std::move(encoder).value(),
                             {.query_prefix = options_.query_prefix,
                              .passage_prefix = options_.passage_prefix,
                              .approximate = options_.approximate,
                              .threads = options_.index_threads},
                             [&where, reported = std::int64_t{0}](const DenseProgress& now) mutable {
                               constexpr std::int64_t kEvery = 10'000;
                               if (now.passages / kEvery > reported)
                                 log_info((now.graph ? "graph of " : "vectors of ") + where + ": " +
                                          std::to_string(now.passages) + " of " + std::to_string(now.all_passages));
                               reported = now.passages / kEvery;
                               return true;
                             });
    if (!retriever) return Error{"env.retriever: " + retriever.error().message};
    return retriever;
  }

  OpenQaOptions options_;
  std::shared_ptr<const OpenQaWorld> world_{};
  std::unique_ptr<EpochOrder> order_{};
};

}  // namespace

void OpenQaOptions::fields(FieldVisitor& visit) {
  visit.field("task_source", task_source,
              "folder with train.jsonl, test.jsonl and passages.jsonl, each also as .jsonl.xz");
  visit.field("train_file", train_file, "questions to train on, JSON lines or CSV; default: that of task_source");
  visit.field("test_file", test_file, "questions to evaluate on; default: that of task_source, or train_file");
  visit.field("question", question, "column of the question; default: the first of the usual names");
  visit.field("answer", answer, "column of the right answers; default: the first of the usual names");
  visit.field("retriever", retriever,
              "a file of passages, an index (.bm25), or the address of a server of Search-R1's API; default: the "
              "passages of task_source");
  enum_field(visit, "index_words", index_words, kIndexWords,
             "words of an index that is built here: Lucene's English analyzer, or runs of letters and digits");
  visit.field("k1", k1, "BM25: how slowly repeated words saturate", at_least(0));
  visit.field("b", b, "BM25: how much long passages are discounted", between(0, 1));
  visit.field("index_threads", index_threads, "threads that build an index, and share the vectors of a search",
              between(1, kMaxThreads));
  visit.field(
      "encoder", encoder,
      "sentence encoder by whose vectors passages are found: a folder of sentence-transformers, or its id on the "
      "hub; default: none, BM25 finds them");
  visit.field("approximate", approximate, "encoder: search a graph of neighbours instead of all vectors");
  visit.field("query_prefix", query_prefix, "encoder: before each query; E5: 'query: '");
  visit.field("passage_prefix", passage_prefix, "encoder: before each passage; E5: 'passage: '");
  visit.field("passages", passages, "passages shown for a search", between(1, 1000));
  visit.field("timeout", timeout, "seconds that a search may take", between(0.001, 1e6));
  enum_field(visit, "protocol", protocol, {"search_r1", "arpo", "verl_agent"},
             "tags, prompts and answers of Search-R1, of ARPO and A2TGPO, or of verl-agent");
  visit.field("max_searches", max_searches, "searches per episode; 0: 4 (search_r1), 6 (arpo), 3 (verl_agent)",
              between(0, kMaxEpisodeSteps));
  visit.field("max_response_tokens", max_response_tokens, "tokens of one response", between(1, kMaxResponseTokens));
  visit.field("longest_result", longest_result, "characters of a result beyond which it is cut; 0: it is shown whole",
              between(0, 1e8));
  visit.field("history_length", history_length, "verl_agent: past steps that a prompt tells of",
              between(0, kMaxEpisodeSteps));
  enum_field(visit, "reward", reward, {"exact_match", "f1", "contains"}, "what an answer earns");
  visit.field("format_scores", format_scores,
              "search_r1: 0.2 less for a right answer of broken format; 0.2 for a wrong answer of right format, 0.1 of "
              "broken format");
  visit.field("format_reward", format_reward, "arpo: reward where the format is broken");
  visit.field("penalty", penalty, "verl_agent: taken off the score of a step that is not valid", at_least(0));
}

int OpenQaOptions::searches() const {
  if (max_searches > 0) return max_searches;
  switch (protocol) {
    case QaProtocol::Arpo: return 6;
    case QaProtocol::VerlAgent: return 3;  // four steps, the last of which only answers
    case QaProtocol::SearchR1: break;
  }
  return 4;
}

std::unique_ptr<EnvironmentFactory> make_open_qa() { return std::make_unique<OpenQaFactory>(); }

}  // namespace carnot
