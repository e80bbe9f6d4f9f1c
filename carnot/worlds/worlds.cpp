#include "carnot/worlds/worlds.h"

#include "carnot/built.h"
#include "carnot/worlds/entries.h"

namespace carnot {

void offer_worlds() {
  static const std::vector<EnvironmentEntry> table = {
      {"sokoban", "push boxes onto targets (RAGEN)", CARNOT_BUILT(sokoban, make_sokoban)},
      {"frozen_lake", "cross slippery ice (RAGEN, Gymnasium)", CARNOT_BUILT(frozen_lake, make_frozen_lake)},
      {"sudoku", "4x4 Sudoku with feedback (RAGEN)", CARNOT_BUILT(sudoku, make_sudoku)},
      {"search_qa", "questions of one to three hops over an invented world, with a search tool",
       CARNOT_BUILT(search_qa, make_search_qa)},
      {"open_qa", "real questions with a search over passages of yours (Search-R1, ARPO, A2TGPO, verl-agent)",
       CARNOT_BUILT(open_qa, make_open_qa)},
      {"alfworld", "household tasks in text rooms, from ALFWorld's game files", CARNOT_BUILT(alfworld, make_alfworld)},
      {"webshop", "buy what an instruction asks for in a shop of a thousand products or a million",
       CARNOT_BUILT(webshop, make_webshop)},
      {"swe", "repair small repositories, or SWE-bench's, with R2E-Gym's tools in a sandbox",
       CARNOT_BUILT(swe, make_swe)},
      {"gsm8k", "word problems in one turn, from files of GSM8K's or verl's rows", CARNOT_BUILT(gsm8k, make_gsm8k)},
      {"word_problems", "stories of one to four operations, with a calculator",
       CARNOT_BUILT(word_problems, make_word_problems)},
      {"dataset", "questions and answers from a file of your own, with tools if you like",
       CARNOT_BUILT(dataset, make_dataset)},
      {"process", "your own, in any language: a program that answers in JSON", CARNOT_BUILT(process, make_process)},
      {"agent", "agents written elsewhere: programs that talk to the policy by OpenAI's API",
       CARNOT_BUILT(agent, make_agent)},
      {"skeleton", "guess a number: a small environment to copy", CARNOT_BUILT(skeleton, make_skeleton)},
  };
  offer_environments(table);
}

}  // namespace carnot
