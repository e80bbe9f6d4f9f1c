// worlds/word_problems/environment.h -- story problems of one to four operations, answered with a calculator.
//
// An environment for models with a tokenizer of their own: plain English, numbers below a thousand. Demonstrations may
// have fewer operations than tasks, so that training has to generalize; validation tasks have names, things and
// sentences that no training task has (worlds/word_problems/problem.h).
//
//   Mia has 12 apples. Mia finds 5 more. Mia doubles the pile. How many apples does Mia have now?
//   Mia finds 5 more. <calculator>12 + 5</calculator> <result>
//   17
//   </result>Mia doubles the pile. <calculator>17 * 2</calculator> <result>
//   34
//   </result><answer>34</answer>
//
// Reward 1 for the right number between answer tags, else 0. The calculator is called between tags, or as the chat
// format has it (`tool_calls: chat`, worlds/tool_use/tool_use.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/tool_use/tool_use.h"
#include "carnot/worlds/word_problems/problem.h"

namespace carnot {

struct WordProblemOptions {
  std::vector<double> operation_shares{0.25, 0.25, 0.25, 0.25};  ///< of tasks with 1, 2, 3, 4 operations
  std::vector<double> demonstrated_shares{};                     ///< of demonstrations; empty: as operation_shares
  int max_response_tokens = 64;
  ToolCallStyle tool_calls = ToolCallStyle::Tags;
  int max_tool_calls = 8;

  void fields(FieldVisitor& visit);
  std::vector<std::string> problems() const;
};

std::unique_ptr<EnvironmentFactory> make_word_problems();

}  // namespace carnot
