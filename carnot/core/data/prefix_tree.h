// data/prefix_tree.h -- token sequences that share common prefixes: what a forward pass has to compute.
//
// A token's results depend only on the tokens up to it, so equal prefixes are computed once, whichever trajectories
// they belong to: a group's prompt, the turns that branches share. This is about computation, not about the
// trajectories' structure, which is stored (data/tree.h).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "carnot/core/data/tokens.h"

namespace carnot {

class PrefixTree {
 public:
  /// Rows [begin, begin + rows) after the first `past` positions of the earlier stretch `parent`; -1 and 0: no parent.
  struct Stretch {
    int parent = -1;
    int past = 0;
    int begin = 0;
    int rows = 0;
  };

  /// Returns the row of each token. A prefix shared with earlier sequences reuses their rows; the rest gets new rows.
  std::vector<std::int64_t> add(std::span<const TokenId> tokens);

  /// The same with new rows for all tokens, which later sequences do not share.
  std::vector<std::int64_t> add_alone(std::span<const TokenId> tokens);

  /// The number of rows that add() would make.
  int num_new_rows(std::span<const TokenId> tokens) const;

  int num_rows() const { return static_cast<int>(tokens_.size()); }
  const std::vector<Stretch>& stretches() const { return stretches_; }
  /// By row. A position is the number of preceding tokens.
  const std::vector<TokenId>& tokens() const { return tokens_; }
  const std::vector<std::int64_t>& positions() const { return positions_; }

 private:
  /// How much of a sequence is already in the tree.
  struct Match {
    int stretch = -1;
    int length = 0;
  };
  /// Calls visit(stretch, first position, end) for each stretch on the sequence's path.
  template <class Visit>
  Match follow(std::span<const TokenId> tokens, const Visit& visit) const;
  void append(int parent, std::span<const TokenId> tokens, int past, std::vector<std::int64_t>& rows);

  std::vector<Stretch> stretches_;
  std::vector<TokenId> tokens_;
  std::vector<std::int64_t> positions_;
  /// The stretch that branches off another one at a position with a token.
  std::map<std::tuple<int, int, TokenId>, int> next_;
};

}  // namespace carnot
