// worlds/open_qa/verl_agent_search.h -- verl-agent's words for search tasks: prompts, actions, results (Feng et al.
// 2025, GiGPO, arXiv:2505.10978).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/retrieval/retriever/retriever.h"

namespace carnot {

struct SearchStep {
  std::string action{};       ///< `<search>query</search>`, `<answer>...</answer>` or empty
  std::string information{};  ///< `<information>{"result": "..."}</information>` or empty
};

/// The prompt of a step: of the first, or of a later one with the last `history_length` steps.
std::string verl_agent_search_prompt(std::string_view question, const std::vector<SearchStep>& steps,
                                     std::size_t history_length);

struct VerlAgentSearchAction {
  std::string text{};  ///< as SearchStep has it
  bool valid = false;
};

/// Cuts the response after its first `</search>`, else its first `</answer>`, and takes the first search pair, else the
/// first answer pair. Not valid: neither is there, both tags occur in the response, or one twice. Tags in any case.
VerlAgentSearchAction read_verl_agent_search(std::string_view response);

/// `<information>{"result": "Doc 1: ...\n"}</information>`, in JSON of ASCII letters, as Python writes it.
std::string verl_agent_information(const RetrievedPassages& passages);

}  // namespace carnot
