// worlds/search_qa/protocol.h -- the tags of search agents (ARPO, A2TGPO): think, search, result, answer with a box.
//
//   <think> ... </think> <search> query </search> <result>
//   passages
//   </result><think> ... </think> <answer> \boxed{ Z } </answer>
//
// All of it is one assistant message; only the result comes from outside.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carnot {

inline constexpr std::string_view kSearchOpen = "<search>";
inline constexpr std::string_view kSearchClose = "</search>";
inline constexpr std::string_view kAnswerOpen = "<answer>";
inline constexpr std::string_view kAnswerClose = "</answer>";

/// Every tag, and the head of the box: what a tokenizer should know as single tokens.
std::vector<std::string> search_protocol_tokens();

enum class SearchAction { Search, Answer, None };

/// What a response asks for.
struct SearchResponse {
  SearchAction action = SearchAction::None;
  std::string_view text{};  ///< the query, or the text between the answer tags; stripped, a view into the response
};

/// A response that ends with `</search>` is a search for the text after the last `<search>`; any other with a whole
/// answer pair is an answer, the last one.
SearchResponse parse_search_response(std::string_view response);

/// What is returned for a search, from its formatted passages.
std::string search_result(std::string_view passages);

/// What breaks the format of a finished assistant message, empty if nothing does. Tags must come in pairs, unnested;
/// at least one think pair; each search pair followed by its result pair and no result alone; exactly one answer pair,
/// with a `\boxed{` inside.
std::string format_problem(std::string_view message);

}  // namespace carnot
