// worlds/word_problems/problem.h -- invented stories about a growing and shrinking pile of things, as data.
//
// Two sets of names, things and phrasings, without a common sentence: one for training, one held out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/core/base/random.h"

namespace carnot {

enum class Wording : std::uint8_t { Training, HeldOut };

/// One sentence of a story, and what it does to the number of things.
struct StoryStep {
  std::string sentence{};    ///< "Mia finds 5 more."
  std::string expression{};  ///< "12 + 5"
  std::int64_t value = 0;    ///< of the expression
};

struct WordProblem {
  std::string beginning{};  ///< "Mia has 12 apples."
  std::vector<StoryStep> steps{};
  std::string question{};  ///< "How many apples does Mia have now?"

  /// The whole story.
  std::string text() const;
  std::int64_t answer() const { return steps.back().value; }
};

/// The largest number that a story may reach.
inline constexpr std::int64_t kLargestPile = 999;

/// A story of `operations` sentences. Numbers stay whole, in 1..kLargestPile. REQUIRES: operations >= 1.
WordProblem invent_problem(Wording wording, int operations, RandomStream& random);

}  // namespace carnot
