// reward/pattern.h -- a regular expression of a recipe (PCRE2, UTF-8), matched within limits.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "carnot/base/result.h"

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

 private:
  struct State;
  explicit Pattern(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace carnot
