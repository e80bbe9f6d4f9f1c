#include "carnot/base/nearest_word.h"
#include "carnot/env/agent/environment.h"
#include "carnot/env/alfworld/factory.h"
#include "carnot/env/dataset/environment.h"
#include "carnot/env/environment.h"
#include "carnot/env/frozen_lake/factory.h"
#include "carnot/env/gsm8k/environment.h"
#include "carnot/env/open_qa/factory.h"
#include "carnot/env/process/environment.h"
#include "carnot/env/search_qa/factory.h"
#include "carnot/env/skeleton/environment.h"
#include "carnot/env/sokoban/factory.h"
#include "carnot/env/sudoku/factory.h"
#include "carnot/env/swe/factory.h"
#include "carnot/env/webshop/factory.h"

namespace carnot {

const std::vector<EnvironmentEntry>& environments() {
  static const std::vector<EnvironmentEntry> table = {
      {"sokoban", "push boxes onto targets (RAGEN)", make_sokoban},
      {"frozen_lake", "cross slippery ice (RAGEN, Gymnasium)", make_frozen_lake},
      {"sudoku", "4x4 Sudoku with feedback (RAGEN)", make_sudoku},
      {"search_qa", "questions of one to three hops over an invented world, with a search tool", make_search_qa},
      {"open_qa", "real questions with a search over passages of yours (Search-R1, ARPO, A2TGPO, verl-agent)",
       make_open_qa},
      {"alfworld", "household tasks in text rooms, from ALFWorld's game files", make_alfworld},
      {"webshop", "buy what an instruction asks for in a shop of a thousand products or a million", make_webshop},
      {"swe", "repair small repositories, or SWE-bench's, with R2E-Gym's tools in a sandbox", make_swe},
      {"gsm8k", "word problems in one turn, from files of GSM8K's or verl's rows", make_gsm8k},
      {"dataset", "questions and answers from a file of your own, with tools if you like", make_dataset},
      {"process", "your own, in any language: a program that answers in JSON", make_process},
      {"agent", "agents written elsewhere: programs that talk to the policy by OpenAI's API", make_agent},
      {"skeleton", "guess a number: a small environment to copy", make_skeleton},
  };
  return table;
}

Result<std::unique_ptr<EnvironmentFactory>> make_environment_factory(std::string_view name) {
  std::vector<std::string> known;
  for (const auto& entry : environments()) {
    if (entry.name == name) return entry.make();
    known.emplace_back(entry.name);
  }
  return Error{unknown_word("environment", name, known)};
}

}  // namespace carnot
