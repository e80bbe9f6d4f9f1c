#include "carnot/worlds/word_problems/environment.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/worlds/reward/scorer.h"

namespace carnot {
namespace {

constexpr std::string_view kCalculator = "calculator";
constexpr int kMostOperations = 4;

/// The shares of 1, 2, ... operations; says what is wrong with them.
void check_shares(std::string_view key, const std::vector<double>& shares, std::vector<std::string>& problems) {
  const bool positive = std::ranges::any_of(shares, [](double share) { return share > 0; });
  if (positive && std::ssize(shares) <= kMostOperations) return;
  problems.push_back("env." + std::string(key) + ": expected one to " + std::to_string(kMostOperations) +
                     " numbers, of which at least one is above 0");
}

/// The last response of an episode; the calls before it are answered by ToolUse.
class StoryProblem final : public Environment {
 public:
  StoryProblem(WordProblem problem, const WordProblemOptions& options)
      : problem_(std::move(problem)),
        tags_(options.tool_calls == ToolCallStyle::Tags),
        max_response_tokens_(options.max_response_tokens) {}

  Protocol protocol() const override {
    return {.stop_strings = {"</answer>"}, .think_tag = "", .max_response_tokens = max_response_tokens_};
  }

  Opening open() override {
    const std::string call = tags_ ? " in <calculator> tags" : "";
    return {.system = "Solve the story step by step. Use the calculator" + call +
                      " for each step. Then write the final number in <answer> tags.",
            .user = problem_.text()};
  }

  Reply step(const PolicyResponse& response) override {
    CARNOT_CHECK(!done_, "the episode is over");
    done_ = true;
    const auto answer = answer_at(AnswerPlace::Tag, response.text);
    const bool right = answer && trim(*answer) == std::to_string(problem_.answer());
    Reply reply{.reward = right ? 1.0 : 0.0, .valid_action = answer.has_value(), .done = true, .success = right};
    if (!answer) reply.outcome = Outcome::Unparsable;
    reply.measures = {{"answered", answer.has_value()}};
    if (answer) reply.answer = std::string(trim(*answer));
    return reply;
  }

  std::string anchor() const override { return problem_.text(); }
  std::vector<std::string> ground_truth() const override { return {std::to_string(problem_.answer())}; }
  std::map<std::string, std::string> info() const override {
    return {{"question", problem_.text()}, {"operations", std::to_string(problem_.steps.size())}};
  }
  Branching branching() const override { return Branching::Cloned; }
  std::unique_ptr<Environment> clone() const override { return std::make_unique<StoryProblem>(*this); }

  const WordProblem& problem() const { return problem_; }

 private:
  WordProblem problem_;
  bool tags_;
  int max_response_tokens_;
  bool done_ = false;
};

/// Says each sentence, computes it, and answers.
class StepByStep final : public ScriptedAgent {
 public:
  StepByStep(WordProblem problem, ToolCallStyle style) : problem_(std::move(problem)), style_(style) {}

  PolicyResponse respond(std::string_view) override {
    if (next_ == problem_.steps.size()) return "<answer>" + std::to_string(problem_.answer()) + "</answer>";
    const StoryStep& step = problem_.steps[next_++];
    const std::string name(kCalculator);
    if (style_ == ToolCallStyle::Tags) return step.sentence + " <" + name + ">" + step.expression + "</" + name + ">";
    PolicyResponse response(step.sentence);
    response.tool_calls = {{.name = name, .arguments = R"({"expression": ")" + step.expression + "\"}"}};
    return response;
  }

 private:
  WordProblem problem_;
  ToolCallStyle style_;
  std::size_t next_ = 0;
};

class WordProblemFactory final : public EnvironmentFactory {
 public:
  void fields(FieldVisitor& visit) override { options_.fields(visit); }

  Status prepare(std::uint64_t seed) override {
    const auto problems = options_.problems();
    if (!problems.empty()) return join_errors(problems);
    seed_ = seed;
    CARNOT_ASSIGN_OR_RETURN(auto tools, ToolUse::open({.tools = {std::string(kCalculator)},
                                                       .tool_calls = options_.tool_calls,
                                                       .max_tool_calls = options_.max_tool_calls}));
    tools_ = std::move(tools);
    return Done{};
  }

  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    return invent(split, index, options_.operation_shares);
  }

  std::unique_ptr<Environment> make_demonstrated(std::int64_t index, double) const override {
    const auto& shares = options_.demonstrated_shares;
    return invent(Split::Train, index, shares.empty() ? options_.operation_shares : shares);
  }

  std::unique_ptr<ScriptedAgent> script(const Environment& environment, double, RandomStream) const override {
    const auto* story = dynamic_cast<const StoryProblem*>(&environment.innermost());
    CARNOT_CHECK(story != nullptr, "the environment is one of this factory");
    return std::make_unique<StepByStep>(story->problem(), options_.tool_calls);
  }

  std::string answer_lead() const override { return "<answer>"; }

 private:
  std::unique_ptr<Environment> invent(Split split, std::int64_t index, const std::vector<double>& shares) const {
    CARNOT_CHECK(tools_ != nullptr, "prepare() has not been called");
    CARNOT_CHECK_GE(index, 0);
    const bool training = split == Split::Train;
    RandomStream random(derive_seed(seed_, training ? "word_problems_train" : "word_problems_validation",
                                    static_cast<std::uint64_t>(index)));
    const int operations = 1 + static_cast<int>(random.weighted(shares));
    auto problem = invent_problem(training ? Wording::Training : Wording::HeldOut, operations, random);
    return ToolUse::add_to(std::make_unique<StoryProblem>(std::move(problem), options_), tools_);
  }

  WordProblemOptions options_;
  std::shared_ptr<const ToolUse> tools_{};
  std::uint64_t seed_ = 0;
};

}  // namespace

void WordProblemOptions::fields(FieldVisitor& visit) {
  visit.field("operation_shares", operation_shares, "shares of tasks with 1, 2, 3, 4 operations", at_least(0));
  visit.field("demonstrated_shares", demonstrated_shares,
              "the same of demonstrations; empty: as tasks. With fewer operations, training has to generalize",
              at_least(0));
  visit.field("max_response_tokens", max_response_tokens, "tokens of a response", between(1, kMaxResponseTokens));
  enum_field(visit, "tool_calls", tool_calls, kToolCallStyles,
             "how the calculator is called: as the chat format has it, or between tags with its name");
  visit.field("max_tool_calls", max_tool_calls, "calls of an episode", between(1, kMaxEpisodeSteps / 2));
}

std::vector<std::string> WordProblemOptions::problems() const {
  std::vector<std::string> problems;
  check_shares("operation_shares", operation_shares, problems);
  if (!demonstrated_shares.empty()) check_shares("demonstrated_shares", demonstrated_shares, problems);
  return problems;
}

std::unique_ptr<EnvironmentFactory> make_word_problems() { return std::make_unique<WordProblemFactory>(); }

}  // namespace carnot
