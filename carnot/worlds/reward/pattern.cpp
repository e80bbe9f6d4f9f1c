#include "carnot/worlds/reward/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

PCRE2_SPTR subject(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string message_of(int code) {
  std::array<char, 160> text{};
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR*>(text.data()), text.size());
  return text.data();
}

}  // namespace

struct Pattern::State {
  std::unique_ptr<pcre2_code, void (*)(pcre2_code*)> code{nullptr, pcre2_code_free};
  std::unique_ptr<pcre2_match_context, void (*)(pcre2_match_context*)> limits{nullptr, pcre2_match_context_free};
};

Pattern::Pattern(std::unique_ptr<State> state) : state_(std::move(state)) {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

Result<Pattern> Pattern::compile(const std::string& expression) {
  if (expression.size() > kMaxPatternBytes)
    return Error{"a regular expression of " + std::to_string(expression.size()) + " bytes; expected at most " +
                 std::to_string(kMaxPatternBytes)};
  int problem = 0;
  PCRE2_SIZE place = 0;
  auto state = std::make_unique<State>();
  state->code.reset(
      pcre2_compile(subject(expression), expression.size(), PCRE2_UTF | PCRE2_UCP, &problem, &place, nullptr));
  if (!state->code) return Error{"'" + expression + "', at byte " + std::to_string(place) + ": " + message_of(problem)};
  state->limits.reset(pcre2_match_context_create(nullptr));
  CARNOT_CHECK(state->limits != nullptr, "out of memory");
  pcre2_set_match_limit(state->limits.get(), kMaxMatchSteps);
  pcre2_set_heap_limit(state->limits.get(), kMaxMatchKilobytes);
  return Pattern(std::move(state));
}

/// Matches one after the other.
struct Pattern::Search {
  explicit Search(const State& state)
      : state(state), match(pcre2_match_data_create_from_pattern(state.code.get(), nullptr), pcre2_match_data_free) {
    CARNOT_CHECK(match != nullptr, "out of memory");
  }

  /// Groups of the next match from `begin`, itself counted as the first; 0 if there is none.
  int next(std::string_view text, std::size_t begin) {
    const std::uint32_t checked = begin == 0 ? 0 : PCRE2_NO_UTF_CHECK;
    const int found =
        pcre2_match(state.code.get(), subject(text), text.size(), begin, checked, match.get(), state.limits.get());
    if (found == PCRE2_ERROR_MATCHLIMIT || found == PCRE2_ERROR_HEAPLIMIT)
      throw std::runtime_error("a regular expression gave up: " + message_of(found));
    return std::max(found, 0);
  }

  const PCRE2_SIZE* places() const { return pcre2_get_ovector_pointer(match.get()); }

  const State& state;
  std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match;
};

bool Pattern::matches(std::string_view text) const { return Search(*state_).next(text, 0) > 0; }

std::optional<std::string> Pattern::last_match(std::string_view text) const {
  Search search(*state_);
  std::optional<std::string> last;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const int groups = search.next(text, begin);
    if (groups == 0) break;
    const PCRE2_SIZE* places = search.places();
    int group = groups > 1 ? 1 : 0;
    while (group + 1 < groups && places[2 * group] == PCRE2_UNSET) ++group;
    last = std::string(text.substr(places[2 * group], places[2 * group + 1] - places[2 * group]));
    begin = std::max<std::size_t>(places[1], places[0] + 1);
    while (begin < text.size() && continues_character(text[begin])) ++begin;
  }
  return last;
}

}  // namespace carnot
