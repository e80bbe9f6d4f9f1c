// text/added_tokens.h -- finds added tokens (<|im_end|>, <think>, ...) in text, as Hugging Face's added vocabulary
// does.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/data/tokens.h"

namespace carnot {

struct AddedToken {
  TokenId id = 0;
  std::string content{};
  bool lstrip = false;       ///< takes the blanks before it
  bool rstrip = false;       ///< takes the spaces after it
  bool single_word = false;  ///< not within a word
  bool normalized = false;   ///< looked for in the normalised text
  bool special = false;      ///< Hugging Face leaves it out of decoded text on request
};

/// What a blank is in the text that is searched.
enum class Blank {
  WhiteSpace,
  Mark,  ///< SentencePiece's U+2581, which lstrip and rstrip do not take
};

/// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// Leftmost longest matches of a set of tokens. Immutable.
class AddedTokenFinder {
 public:
  explicit AddedTokenFinder(std::vector<AddedToken> tokens, Blank blank = Blank::WhiteSpace);

  /// Calls text_visit(stretch) and token_visit(id) in order of the text. Special tokens that reach into one of
  /// `contents`, ranges of the text in order, are text.
  template <class TextVisit, class TokenVisit>
  void split(std::string_view text, std::span<const TextRange> contents, TextVisit&& text_visit,
             TokenVisit&& token_visit) const {
    std::size_t done = 0;
    std::size_t from = 0;
    for (Match match; find(text, from, contents, match); from = match.searched) {
      if (!match.token || (match.token->lstrip && match.end <= done)) continue;
      const std::size_t begin = std::max(match.begin, done);
      if (begin > done) text_visit(text.substr(done, begin - done));
      token_visit(match.token->id);
      done = match.end;
    }
    if (done < text.size()) text_visit(text.substr(done));
  }

  bool has_special() const {
    return std::any_of(tokens_.begin(), tokens_.end(), [](const AddedToken& token) { return token.special; });
  }

 private:
  struct Match {
    const AddedToken* token = nullptr;  ///< null: only part of a word, does not count
    std::size_t begin = 0;              ///< with the blanks it takes
    std::size_t end = 0;
    std::size_t searched = 0;  ///< where the search continues
  };

  bool find(std::string_view text, std::size_t from, std::span<const TextRange> contents, Match& match) const;
  const AddedToken* longest_at(std::string_view text, std::size_t at, std::span<const TextRange> contents) const;
  bool is_taken(char32_t code_point) const;
  std::size_t skip_blanks_back(std::string_view text, std::size_t begin) const;
  std::size_t skip_blanks(std::string_view text, std::size_t end) const;

  std::vector<AddedToken> tokens_;                               // longest first
  std::array<std::vector<std::uint32_t>, 256> by_first_byte_{};  // indices into tokens_
  Blank blank_;
};

}  // namespace carnot
