// worlds/open_qa/protocols.h -- the words of three code bases: prompts, actions, results, format.
//
// Search-R1 (Jin et al. 2025, arXiv:2503.09516):
//
//   <think> ... </think> <search> query </search>
//
//   <information>Doc 1(Title: "X") ...
//   </information>
//
//   <think> ... </think> <answer> Z </answer>
//
// verl-agent's search tasks (Feng et al. 2025, GiGPO, arXiv:2505.10978). ARPO where search is the only tool, which
// A2TGPO shares (Dong et al. 2025, arXiv:2507.19849); its tags and their format are in worlds/search_qa/protocol.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/retrieval/retriever/retriever.h"
#include "carnot/worlds/search_qa/protocol.h"

namespace carnot {

// Search-R1.

/// The user message; the question gets a `?` at its end where it has none.
std::string search_r1_prompt(std::string_view question);

/// The response up to its first `</search>`; without one, up to its first `</answer>`.
std::string_view search_r1_cut(std::string_view response);

/// The first whole pair of search or answer tags of a response that was cut.
SearchResponse search_r1_action(std::string_view response);

/// What a search is answered with: `\n\n<information>...</information>\n\n`.
std::string search_r1_information(std::string_view passages);
/// What a response without an action is answered with.
std::string_view search_r1_reproach();

/// "Doc 1(Title: "X") text\n", and so on; the title is the first line of the contents.
std::string search_r1_passages(const RetrievedPassages& passages);

/// The text of the last whole pair of answer tags, stripped; empty if there is none (`found` says so).
struct TaggedAnswer {
  bool found = false;
  std::string_view text{};
};
TaggedAnswer last_tagged_answer(std::string_view message);

/// Whether an assistant message is think, then any number of search, information, think, then answer, with nothing but
/// white space between them (the format reward of Search-R1's version 0.3).
bool is_search_r1_format(std::string_view message);

// verl-agent.

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

// ARPO.

/// The system prompt of ARPO's variant `search`.
std::string_view arpo_search_prompt();

/// "Doc 1 (Title: "X")\ntext\n\n" and so on, as verl's search tool writes them; without any, that the tool returned
/// nothing.
std::string arpo_passages(const RetrievedPassages& passages);

}  // namespace carnot
