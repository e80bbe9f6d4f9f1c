// view/page.h -- trajectories as one HTML file that needs nothing else and loads nothing: the data as JSON, and a
// script that shows them (trajectories.js, page.js).
//
// The data repeat data/tree.h: groups hold trees, trees hold turns and leaves. Signals are with turns, credit with
// leaves, both on sampled tokens alone, in reading order, rounded to five significant digits. A list of one value again
// and again is that value. Fields at their defaults are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

/// Whether the token's bytes are characters by themselves.
bool is_text(const Tokenizer& tokenizer, TokenId id);

/// A string for each token, where tokens are bytes and a character may take several. Joined, they are the text of all
/// of them, with U+FFFD for bytes that are not characters. Neighbours that are no text by themselves have theirs
/// together, at the first of them.
std::vector<std::string> token_texts(std::span<const TokenId> tokens, const Tokenizer& tokenizer);

/// What an optimizer step did to each token of a trajectory; both empty if nothing is known.
struct TokenStates {
  std::vector<double> ratio{};            ///< NaN where the step did not train the token
  std::vector<std::string> clip_state{};  ///< none, low, high, dual, limit; empty if it did not
};

/// The lists `ratio` and `clip_state` that `carnot credit --explain` wrote into a row of this many tokens; without them
/// nothing. REQUIRES: `row` is a line that was read as a rollout.
TokenStates states_in_row(std::string_view row, std::size_t tokens);

/// What the head of the page says.
struct PageHead {
  std::string title{};
  std::vector<std::pair<std::string, std::string>> facts{};  ///< "method", "grpo"
  std::vector<std::string> notes{};                          ///< what is not on the page, and why
};

/// A group of one step, with what is known of its trajectories; `credit` and `states` are numbered as
/// trajectories({group}), or empty.
struct ViewedGroup {
  std::int64_t step = 0;  ///< as the page calls it
  const Group* group = nullptr;
  std::span<const Credit> credit{};
  std::span<const TokenStates> states{};
};

class Page {
 public:
  /// Without a tokenizer tokens are shown as their ids.
  explicit Page(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  /// False, and nothing is added, where the groups would take more than `bytes` with it.
  bool add(const ViewedGroup& viewed, std::size_t bytes);

  std::size_t bytes() const { return groups_.size(); }

  std::string html(const PageHead& head) const;

 private:
  const Tokenizer* tokenizer_;
  std::string groups_{};  ///< JSON of each, with commas between
  std::set<TokenId> used_{};
};

}  // namespace carnot
