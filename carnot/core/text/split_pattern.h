// text/split_pattern.h -- splits text into pieces by a regular expression (PCRE2, Unicode properties, JIT).
//
// As Hugging Face's Split with behaviour "Isolated": each match is a piece, and so is each stretch between matches.
// Patterns are written for Oniguruma (Ruby syntax). Where PCRE2 reads them otherwise they are translated (blanks), or
// refused (nested classes, intersections, \h).
#pragma once

#include <memory>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

/// GPT-2's pattern, which a ByteLevel step with use_regex implies.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
/// The pattern of Qwen2, Qwen2.5 and Qwen3: letter words with one character before them, single digits.
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Working memory of one search; not shared between threads.
class SplitScratch {
 public:
  SplitScratch();
  SplitScratch(SplitScratch&&) noexcept;
  ~SplitScratch();

 private:
  friend class SplitPattern;
  struct State;
  std::unique_ptr<State> state_;
};

/// Immutable and thread-safe.
class SplitPattern {
 public:
  /// The error says what cannot be read, with the position in the pattern.
  static Result<SplitPattern> compile(std::string_view pattern);
  /// Matches `text` itself.
  static Result<SplitPattern> literal(std::string_view text);

  SplitPattern(SplitPattern&&) noexcept;
  SplitPattern& operator=(SplitPattern&&) noexcept;
  ~SplitPattern();

  /// Calls visit(piece) for each piece in order; together they are `text`. An error where a search takes more than
  /// base/limits.h allows: the pattern backtracks without end on this text. REQUIRES: valid UTF-8.
  template <class Visit>
  Status for_each_piece(std::string_view text, SplitScratch& scratch, Visit&& visit) const {
    std::size_t done = 0;
    while (done < text.size()) {
      Match match;
      const Search found = find(text, done, scratch, match);
      if (found == Search::Exceeded) return limit_exceeded(text.size(), done);
      if (found == Search::Nothing) break;
      if (match.begin > done) visit(text.substr(done, match.begin - done));
      visit(text.substr(match.begin, match.end - match.begin));
      done = match.end;
    }
    if (done < text.size()) visit(text.substr(done));
    return Done{};
  }

 private:
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  enum class Search { Found, Nothing, Exceeded };
  struct State;

  explicit SplitPattern(std::unique_ptr<State> state);
  static Result<SplitPattern> compile_with(std::string_view pattern, unsigned options);
  /// The first match that is not empty, from `start` on.
  Search find(std::string_view text, std::size_t start, SplitScratch& scratch, Match& match) const;
  static Error limit_exceeded(std::size_t size, std::size_t at);

  std::unique_ptr<State> state_;
};

}  // namespace carnot
