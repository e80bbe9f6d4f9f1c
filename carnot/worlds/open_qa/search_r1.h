// worlds/open_qa/search_r1.h -- Search-R1's words: prompt, actions, results, format (Jin et al. 2025,
// arXiv:2503.09516).
//
//   <think> ... </think> <search> query </search>
//
//   <information>Doc 1(Title: "X") ...
//   </information>
//
//   <think> ... </think> <answer> Z </answer>
#pragma once

#include <string>
#include <string_view>

#include "carnot/retrieval/retriever/retriever.h"
#include "carnot/worlds/search_qa/protocol.h"

namespace carnot {

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

}  // namespace carnot
