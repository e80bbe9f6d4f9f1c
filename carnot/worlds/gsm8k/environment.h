// worlds/gsm8k/environment.h -- word problems with a checkable answer, in one turn: a preset of worlds/dataset.
//
// GSM8K (Cobbe et al., arXiv:2110.14168) and rows like it.
// Three styles, each a prompt and a way to find and compare the answer (worlds/reward/maths_answer.h):
//   verl   ` Let's think step by step and output the final answer after "####".`; the number after `####`, as text
//   areal  `\nPlease put your final answer within \boxed{}.`; the box or the last expression, compared as mathematics
//   math   ` Let's think step by step and output the final answer within \boxed{}.`; the box, compared in normal form
// A response scores 1 if its answer is right, `format_score` if it only has one, else 0; the reward is
// (score + reward_bias) * reward_scale. AEnt trains with areal, bias -0.5, scale 10 (arXiv:2509.03493).
//
// With tools (worlds/tool_use/tool_use.h), in as many turns as the policy calls them; the last response is scored.
//
// Tasks are rows of files (worlds/task_rows/task_rows.h), asked and counted as worlds/task_rows/question_set.h says.
#pragma once

#include <memory>
#include <string>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/task_rows/task_rows.h"
#include "carnot/worlds/tool_use/tool_use.h"

namespace carnot {

enum class MathsStyle : std::uint8_t { Verl, Areal, Math };

struct Gsm8kOptions {
  std::string task_source{};  ///< folder with train.jsonl and test.jsonl
  std::string train_file{};
  std::string test_file{};
  MathsStyle style = MathsStyle::Verl;
  bool flexible = false;
  double format_score = 0;
  double reward_scale = 1;
  double reward_bias = 0;
  std::string system{};
  ToolUseOptions tool_use{};
  int max_response_tokens = 1024;

  void fields(FieldVisitor& visit);
};

/// What the style appends to a question.
std::string_view prompt_suffix(MathsStyle style);

/// The answer that the style finds in a response, if any.
std::optional<std::string> find_answer(std::string_view response, const Gsm8kOptions& options);

/// Whether the style takes `answer` for `gold`.
bool same_answer(std::string_view answer, std::string_view gold, const Gsm8kOptions& options);

/// One text for all answers that the style takes for the same; for votes.
std::string canonical_answer(std::string_view answer, MathsStyle style);

/// The row's worked solution without calculator marks, ending as the style asks; without one, the end alone.
std::string worked_solution(const TaskRow& row, MathsStyle style);

/// `text` without `<<...>>`.
std::string without_calculator_marks(std::string_view text);

std::unique_ptr<EnvironmentFactory> make_gsm8k();

}  // namespace carnot
