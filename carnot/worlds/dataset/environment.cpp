#include "carnot/worlds/dataset/environment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/log.h"
#include "carnot/worlds/dataset/scoring.h"
#include "carnot/worlds/task_rows/question_set.h"

namespace carnot {
namespace {

class DatasetFactory final : public QuestionFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    CARNOT_ASSIGN_OR_RETURN(auto opened, Scoring::open(options_));
    const std::shared_ptr<Scoring> scoring = std::move(opened);
    DatasetColumns columns = options_.columns;
    columns.needs_answer = scoring->needs_answer();
    QuestionSet questions{.protocol = {.think_tag = options_.think_tag,
                                       .action_tags = {options_.answer_tag},
                                       .max_turns = 1,
                                       .max_response_tokens = options_.max_response_tokens},
                          .assistant_prefix = options_.assistant_prefix};
    CARNOT_RETURN_IF_ERROR(read_questions(columns, seed, questions));
    CARNOT_RETURN_IF_ERROR(scoring->start_python(questions.train.front()));
    questions.grade = [scoring](const DatasetRow& row, const PolicyResponse& response) {
      return scoring->grade(row, response);
    };
    questions.score_group = [scoring](const DatasetRow& row, std::span<Reply> replies) {
      scoring->score_group(row, replies);
    };
    set_questions(std::move(questions), seed, "dataset_epoch");
    CARNOT_ASSIGN_OR_RETURN(auto tools, ToolUse::open(options_.tool_use));
    tools_ = std::move(tools);
    return Done{};
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    return ToolUse::add_to(QuestionFactory::make(split, index), tools_);
  }

 private:
  Result<std::vector<DatasetRow>> read_rows(const std::string& file, const std::string& key,
                                            const DatasetColumns& columns) const {
    if (file.empty())
      return Error{key + ": names no file; expected JSON lines, JSON, CSV or Parquet (docs/datasets.md)"};
    auto rows = read_dataset(file, columns, options_.python);
    if (!rows) return Error{key + ": " + rows.error().message};
    return rows;
  }

  Status read_questions(const DatasetColumns& columns, std::uint64_t seed, QuestionSet& questions) const {
    CARNOT_ASSIGN_OR_RETURN(auto train, read_rows(options_.train_file, "env.train_file", columns));
    questions.train = std::move(train);
    if (options_.test_file.empty()) return hold_out(seed, questions);
    if (options_.held_out_share != DatasetOptions{}.held_out_share)
      return Error{"env.held_out_share: has no effect: env.test_file names the rows of validation"};
    CARNOT_ASSIGN_OR_RETURN(auto test, read_rows(options_.test_file, "env.test_file", columns));
    questions.test = std::move(test);
    return Done{};
  }

  /// Moves a share of the rows from training to validation; which ones follows from the seed.
  Status hold_out(std::uint64_t seed, QuestionSet& questions) const {
    const std::size_t all = questions.train.size();
    if (all < 2)
      return Error{"env.test_file: names no file, and env.train_file has one row; expected a second one to hold out"};
    const double share = std::ceil(options_.held_out_share * static_cast<double>(all));
    const std::size_t held_out = std::min(static_cast<std::size_t>(share), all - 1);
    EpochOrder order(all, seed, "held_out");
    std::vector<bool> is_test(all);
    for (std::size_t i = 0; i < held_out; ++i) is_test[order.row(static_cast<std::int64_t>(i))] = true;
    std::vector<DatasetRow> train;
    for (std::size_t i = 0; i < all; ++i)
      (is_test[i] ? questions.test : train).push_back(std::move(questions.train[i]));
    questions.train = std::move(train);
    log_info("env.test_file: names no file; " + std::to_string(held_out) + " of " + std::to_string(all) +
             " rows of env.train_file are held out for validation (env.held_out_share)");
    return Done{};
  }

  DatasetOptions options_;
  std::shared_ptr<const ToolUse> tools_{};
};

}  // namespace

void DatasetOptions::fields(FieldVisitor& visit) {
  visit.field("train_file", train_file, "rows of training: JSON lines, a JSON array or .csv, plain or .xz; or Parquet");
  visit.field("test_file", test_file, "rows of validation; empty: some of train_file are held out");
  visit.field("held_out_share", held_out_share, "their share, drawn by the seed",
              Limits{.low = 0, .high = 1, .open_low = true, .open_high = true});
  visit.field("question", columns.question,
              "column of the question, a text or a list of messages; empty: question, problem, prompt, messages, ...");
  visit.field("answer", columns.answer,
              "column of the right answer or a list of them; empty: answer, solution, ground_truth, ...");
  visit.field("system", columns.system, "system message; {column} is the row's column");
  visit.field("prompt", columns.prompt, "user message; {question} is the question, {column} any column");
  visit.field("assistant_prefix", assistant_prefix, "what every response starts with");
  enum_field(visit, "answer_in", answer_in, kAnswerPlaces, "where in a response its answer is");
  visit.field("answer_tag", answer_tag, "of answer_in: tag");
  visit.field("think_tag", think_tag, "tag of the thinking");
  visit.field("scorers", scorers, "what the reward adds up, with weights: [maths, 0.1 * format]");
  visit.field("success_at", success_at, "the first scorer's value from which a response counts as a success");
  visit.field("pattern", scorer.pattern, "regular expression (PCRE2) of the scorer pattern");
  visit.field("schema", schema_file, "file with the JSON schema of the scorer json");
  visit.field("length", scorer.length, "characters of the scorer length", between(1, kMaxResponseTokens));
  visit.field(
      "reward", reward,
      "FILE:FUNCTION, a Python function, or a list of them: the scorer python; FILE.py alone: its compute_score; "
      "all responses of a group come in one call");
  visit.field("reward_weights", reward_weights, "weights of several, in their order; empty: 1 each",
              between(-kLargestScorerWeight, kLargestScorerWeight));
  visit.field("python", python, "the interpreter that runs them, and reads Parquet (with pyarrow)");
  visit.field("timeout", timeout, "seconds that they may take", Limits{.low = 0, .high = 1e6, .open_low = true});
  section(visit, "judge", judge, "a language model behind an OpenAI-compatible API: the scorer judge");
  visit.field("max_response_tokens", max_response_tokens, "tokens of a response", between(1, kMaxResponseTokens));
  tool_use.fields(visit);
}

std::unique_ptr<EnvironmentFactory> make_dataset() { return std::make_unique<DatasetFactory>(); }

}  // namespace carnot
