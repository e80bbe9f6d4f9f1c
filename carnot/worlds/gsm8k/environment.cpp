#include "carnot/worlds/gsm8k/environment.h"

#include <nlohmann/json.hpp>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/reward/maths_answer.h"
#include "carnot/worlds/reward/maths_normal_form.h"
#include "carnot/worlds/task_rows/question_set.h"

namespace carnot {
namespace {

Reply grade(const DatasetRow& row, std::string_view response, const Gsm8kOptions& options) {
  const auto answer = find_answer(response, options);
  const std::string vote = answer ? canonical_answer(*answer, options.style) : "";
  const bool right = answer && same_answer(*answer, row.answers.front(), options);
  const double score = right ? 1 : vote.empty() ? 0 : options.format_score;
  Reply reply;
  reply.reward = (score + options.reward_bias) * options.reward_scale;
  reply.valid_action = !vote.empty();
  reply.success = right;
  reply.measures = {{"answered", !vote.empty()}};
  if (!vote.empty()) reply.answer = vote;
  return reply;
}

DatasetRow dataset_row(const TaskRow& task, const Gsm8kOptions& options) {
  const MathsStyle style = options.style;
  return {.system = task.system.empty() ? options.system : task.system,
          .question = task.question,
          .user = task.question + std::string(task.whole_prompt ? "" : prompt_suffix(style)),
          .answers = {task.ground_truth},
          .solution = worked_solution(task, style),
          .info = {{"question", task.question}, {"data_source", task.data_source}}};
}

/// The bare problem: a line of input is the final answer.
class MathsGame : public Game {
 public:
  explicit MathsGame(const DatasetRow& row) : row_(&row) {}

  std::string board_json() const override {
    return nlohmann::ordered_json{{"question", row_->question}, {"answer", row_->answers.front()}}.dump();
  }

  std::string observation() const override { return shown_.empty() ? row_->question : shown_; }

  GameStep step(std::string_view action) override {
    if (trim(action).empty()) return {.observation = observation(), .reward = {.value = 0, .integer = true}};
    const bool right = maths_equal(action, row_->answers.front());
    shown_ = right ? "Right." : "Wrong: " + row_->answers.front() + ".";
    return {.observation = shown_,
            .reward = {.value = right ? 1.0 : 0.0, .integer = true},
            .done = true,
            .success = right,
            .effective = true,
            .valid = true};
  }

  std::unique_ptr<Game> clone() const override { return std::make_unique<MathsGame>(*this); }

 private:
  const DatasetRow* row_;
  std::string shown_{};
};

class Gsm8kFactory final : public QuestionFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    if (options_.flexible && options_.style != MathsStyle::Verl)
      return Error{"env.flexible: is of style verl alone; expected false, or env.style: verl"};
    QuestionSet questions{
        .protocol = {
            .think_tag = "", .action_tags = {}, .max_turns = 1, .max_response_tokens = options_.max_response_tokens}};
    for (auto& [rows, file, key, stem] : {std::tuple{&questions.train, &options_.train_file, "train_file", "train"},
                                          std::tuple{&questions.test, &options_.test_file, "test_file", "test"}}) {
      CARNOT_ASSIGN_OR_RETURN(const auto path, file_of(*file, key, stem));
      CARNOT_ASSIGN_OR_RETURN(const auto tasks, read_task_rows(path));
      for (const TaskRow& task : tasks) rows->push_back(dataset_row(task, options_));
    }
    questions.grade = [options = options_](const DatasetRow& row, const PolicyResponse& response) {
      return grade(row, response.text, options);
    };
    set_questions(std::move(questions), seed, "gsm8k_epoch");
    CARNOT_ASSIGN_OR_RETURN(auto tools, ToolUse::open(options_.tool_use));
    tools_ = std::move(tools);
    return Done{};
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    return ToolUse::add_to(QuestionFactory::make(split, index), tools_);
  }

  Result<std::unique_ptr<Game>> make_game(std::uint64_t seed) const override {
    return std::unique_ptr<Game>(std::make_unique<MathsGame>(row(Split::Validation, static_cast<std::int64_t>(seed))));
  }

  std::string answer_lead() const override { return options_.style == MathsStyle::Verl ? "#### " : "\\boxed{"; }

 private:
  Result<std::filesystem::path> file_of(const std::string& file, const std::string& key,
                                        const std::string& stem) const {
    if (!file.empty()) return std::filesystem::path(file);
    if (options_.task_source.empty())
      return Error{"env." + key + ": names no file; expected one of JSON lines, or env.task_source: a folder with " +
                   stem + ".jsonl (docs/gsm8k.md)"};
    auto found = find_task_file(options_.task_source, stem);
    if (!found) return Error{"env.task_source: " + found.error().message};
    return found;
  }

  Gsm8kOptions options_;
  std::shared_ptr<const ToolUse> tools_{};
};

}  // namespace

void Gsm8kOptions::fields(FieldVisitor& visit) {
  visit.field("task_source", task_source,
              "folder with train.jsonl and test.jsonl, plain or .xz: GSM8K's rows or verl's");
  visit.field("train_file", train_file, "file of training rows; empty: of task_source");
  visit.field("test_file", test_file, "file of validation rows; empty: of task_source");
  enum_field(visit, "style", style, {"verl", "areal", "math"}, "what the prompt asks for and how answers are compared");
  visit.field("flexible", flexible, "style verl: take the last number where the answer is, marked by #### or not");
  visit.field("format_score", format_score, "score of a wrong answer; without an answer it is 0");
  visit.field("reward_scale", reward_scale, "the reward is (score + reward_bias) * reward_scale");
  visit.field("reward_bias", reward_bias, "added to the score before it is scaled");
  visit.field("system", system, "system message of rows that have none");
  visit.field("max_response_tokens", max_response_tokens, "tokens of a response", between(1, kMaxResponseTokens));
  tool_use.fields(visit);
}

std::string_view prompt_suffix(MathsStyle style) {
  switch (style) {
    case MathsStyle::Verl: return " Let's think step by step and output the final answer after \"####\".";
    case MathsStyle::Areal: return "\nPlease put your final answer within \\boxed{}.";
    case MathsStyle::Math: return " Let's think step by step and output the final answer within \\boxed{}.";
  }
  return "";
}

std::optional<std::string> find_answer(std::string_view response, const Gsm8kOptions& options) {
  switch (options.style) {
    case MathsStyle::Verl: return options.flexible ? last_number(response) : marked_answer(response);
    case MathsStyle::Areal: return boxed_or_last_expression(response);
    case MathsStyle::Math: return boxed_content(response);
  }
  return std::nullopt;
}

bool same_answer(std::string_view answer, std::string_view gold, const Gsm8kOptions& options) {
  if (options.style == MathsStyle::Areal) return maths_equal(answer, gold);
  if (options.style == MathsStyle::Verl) return answer == gold;
  const std::string normal = normalize_maths(answer);
  return !normal.empty() && normal == normalize_maths(gold);
}

std::string canonical_answer(std::string_view answer, MathsStyle style) {
  switch (style) {
    case MathsStyle::Verl: return std::string(answer);
    case MathsStyle::Areal: return canonical_maths(answer);
    case MathsStyle::Math: return normalize_maths(answer);
  }
  return "";
}

std::string without_calculator_marks(std::string_view text) {
  std::string out;
  for (auto open = text.find("<<"); open != std::string_view::npos; open = text.find("<<")) {
    const auto close = text.find(">>", open);
    if (close == std::string_view::npos) break;
    out += text.substr(0, open);
    text.remove_prefix(close + 2);
  }
  return out.append(text);
}

std::string worked_solution(const TaskRow& row, MathsStyle style) {
  std::string_view steps = row.solution;
  steps = trim(steps.substr(0, steps.rfind("#### ")));
  const std::string end = style == MathsStyle::Verl ? "#### " + row.ground_truth
                                                    : "The final answer is $\\boxed{" + row.ground_truth + "}$.";
  return without_calculator_marks(steps) + (steps.empty() ? "" : "\n") + end;
}

std::unique_ptr<EnvironmentFactory> make_gsm8k() { return std::make_unique<Gsm8kFactory>(); }

}  // namespace carnot
