// view/page.h -- trajectories as one HTML file that needs nothing else and loads nothing: the data as JSON, and a
// script that shows them (trajectories.js, page.js).
//
// The data repeat data/tree.h: groups hold trees, trees hold turns and leaves. Signals stand with turns, credit with
// leaves, both on sampled tokens alone, in reading order, rounded to five significant digits. A list of one value again
// and again is that value. Fields at their defaults are left out.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/data/credit_table.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/view/token_states.h"

namespace carnot {

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
