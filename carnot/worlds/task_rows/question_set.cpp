#include "carnot/worlds/task_rows/question_set.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/tool_use/tool_use.h"

namespace carnot {
namespace {

constexpr std::size_t kTokenizerTexts = 2000;

class AskedQuestion final : public Environment {
 public:
  AskedQuestion(std::shared_ptr<const QuestionSet> questions, const DatasetRow& row)
      : questions_(std::move(questions)), row_(&row) {}

  Protocol protocol() const override { return questions_->protocol; }

  Opening open() override {
    return {.system = row_->system,
            .history = row_->history,
            .user = row_->user,
            .assistant_prefix = questions_->assistant_prefix};
  }

  Reply step(const PolicyResponse& response) override {
    CARNOT_CHECK(!done_, "the episode is over");
    done_ = true;
    Reply reply = questions_->grade(*row_, response);
    reply.done = true;
    return reply;
  }

  void score_group(std::span<Reply> last_replies) override { questions_->score_group(*row_, last_replies); }

  std::string anchor() const override { return row_->info.at("question"); }
  std::vector<std::string> ground_truth() const override { return row_->answers; }
  std::map<std::string, std::string> info() const override { return row_->info; }
  Branching branching() const override { return Branching::Cloned; }
  std::unique_ptr<Environment> clone() const override { return std::make_unique<AskedQuestion>(*this); }

  const DatasetRow& row() const { return *row_; }

 private:
  std::shared_ptr<const QuestionSet> questions_;
  const DatasetRow* row_;
  bool done_ = false;
};

class SolutionReader final : public ScriptedAgent {
 public:
  explicit SolutionReader(std::string solution) : solution_(std::move(solution)) {}
  PolicyResponse respond(std::string_view) override { return solution_; }

 private:
  std::string solution_;
};

}  // namespace

void QuestionFactory::set_questions(QuestionSet questions, std::uint64_t seed, const std::string& draws) {
  order_ = std::make_unique<EpochOrder>(questions.train.size(), seed, draws);
  questions_ = std::make_shared<const QuestionSet>(std::move(questions));
}

const DatasetRow& QuestionFactory::row(Split split, std::int64_t index) const {
  CARNOT_CHECK(questions_ != nullptr, "prepare() has not been called");
  CARNOT_CHECK_GE(index, 0);
  if (split == Split::Train) return questions_->train[order_->row(index)];
  return questions_->test[static_cast<std::size_t>(index) % questions_->test.size()];
}

std::unique_ptr<Environment> QuestionFactory::make(Split split, std::int64_t index) const {
  return std::make_unique<AskedQuestion>(questions_, row(split, index));
}

std::unique_ptr<ScriptedAgent> QuestionFactory::script(const Environment& environment, double, RandomStream) const {
  const auto* question = dynamic_cast<const AskedQuestion*>(&environment.innermost());
  if (question == nullptr || question->row().solution.empty()) return nullptr;
  return std::make_unique<SolutionReader>(question->row().solution);
}

std::vector<std::string> QuestionFactory::tokenizer_texts() const {
  std::vector<std::string> texts;
  const std::vector<DatasetRow>& rows = questions_->train;
  for (std::size_t i = 0; i < std::min(rows.size(), kTokenizerTexts); ++i)
    texts.push_back(rows[i].user + "\n" + (rows[i].solution.empty() ? join(rows[i].answers, "\n") : rows[i].solution));
  return texts;
}

}  // namespace carnot
