// view/page.h -- trajectories as one HTML file that needs nothing else and loads nothing: the data as JSON, and a
// script that shows them (*.js).
//
// The data repeat data/tree.h: groups hold trees, trees hold turns and leaves. Signals are with turns, credit with
// leaves, both on sampled tokens alone, in reading order, rounded to five significant digits. A list of one value
// again and again is that value; one with a single value for each turn is an object with those (lists.h). Fields at
// their defaults are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/base/json.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/view/viewed_method.h"

namespace carnot {

/// Whether the token's bytes are characters by themselves.
bool is_text(const Tokenizer& tokenizer, TokenId id);

/// A string for each token, where tokens are bytes and a character may take several. Joined, they are the text of all
/// of them, with U+FFFD for bytes that are not characters. Neighbours that are no text by themselves have theirs
/// together, at the first of them.
std::vector<std::string> token_texts(std::span<const TokenId> tokens, const Tokenizer& tokenizer);

/// A method of the page.
struct MethodHead {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> objective{};  ///< "clip_low", "0.2"
  std::vector<std::pair<std::string, double>> numbers{};         ///< its numeric settings: "aem.lambda", 1
  std::string missing{};                                         ///< why it could not be computed; empty if it was
};

/// What the head of the page says.
struct PageHead {
  std::string title{};
  std::vector<std::pair<std::string, std::string>> facts{};  ///< "method", "grpo"
  std::vector<std::string> notes{};                          ///< what is not on the page, and why
  std::vector<MethodHead> methods{};                         ///< as ViewedGroup::methods
  std::vector<std::int64_t> steps{};                         ///< all that have rollouts, on the page or not
  std::map<std::int64_t, std::int64_t> after{};              ///< by step, that of the checkpoint of ViewedGroup::after
  OrderedJson curves = OrderedJson::array();                 ///< run_curves()
};

/// A group of one step, and what methods make of its trajectories.
struct ViewedGroup {
  std::int64_t step = 0;  ///< as the page calls it
  const Group* group = nullptr;
  std::size_t first = 0;  ///< number of its first trajectory in the lists of `methods`
  std::span<const ViewedMethod> methods{};
  const Group* after = nullptr;  ///< the same, with LogProbOld under the weights after the step; null: not measured
};

class Page {
 public:
  /// Without a tokenizer tokens are shown as their ids.
  explicit Page(const Tokenizer* tokenizer) : tokenizer_(tokenizer) {}

  /// False, and nothing is added, where the groups would take more than `bytes` with it.
  bool add(const ViewedGroup& viewed, std::size_t bytes);

  /// The page's data: a JSON object of head, vocabulary and groups.
  std::string data(const PageHead& head) const;

  /// The page. `served`: by `carnot view --follow`, which it asks for more.
  std::string html(const PageHead& head, bool served) const;

 private:
  /// Data with these groups, of which `later` more lists follow.
  std::string data_with(const PageHead& head, const std::string& groups, std::size_t later) const;

  const Tokenizer* tokenizer_;
  std::vector<std::string> parts_{};  ///< JSON of groups, with commas between; the first is shown while others load
  std::size_t bytes_ = 0;
  std::set<TokenId> used_{};
};

}  // namespace carnot
