// worlds/reward/pattern.h -- a regular expression of a recipe (PCRE2, UTF-8), matched within limits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

class Pattern {
 public:
  /// The error shows where the expression cannot be read.
  static Result<Pattern> compile(const std::string& expression);

  ~Pattern();
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// Whether it matches anywhere in `text`. Invalid UTF-8 is no match. A search that takes more than kMaxMatchSteps
  /// throws std::runtime_error: whether it matches is unknown. Any thread.
  bool matches(std::string_view text) const;

  /// The last match in `text`: of an expression with groups, the first group that took part in it. Empty if nothing
  /// matches. Fails as matches() does.
  std::optional<std::string> last_match(std::string_view text) const;

 private:
  struct State;
  struct Search;
  explicit Pattern(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace carnot
