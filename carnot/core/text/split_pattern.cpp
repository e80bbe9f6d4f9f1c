#include "carnot/core/text/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "carnot/core/base/limits.h"

namespace carnot {

namespace {

constexpr std::size_t kShownPattern = 400;  ///< bytes in a message; published patterns are shown whole

/// PCRE2 counts U+180E as a blank, Oniguruma follows Unicode's White_Space, which dropped it.
constexpr std::string_view kBlanks = R"(\x{9}-\x{d}\x{85}\p{Z})";

/// What a PCRE2 class of the same text would mean something else for; empty if there is nothing.
std::string_view refused_in_class(std::string_view rest) {
  if (rest.starts_with("[") && !rest.starts_with("[:")) return "a class within a class";
  if (rest.starts_with("&&")) return "an intersection of classes";
  if (rest.starts_with("\\S")) return "\\S within a class";
  return {};
}

Error cannot_read(std::string_view pattern, std::size_t where, std::string_view what) {
  return {"'" + std::string(pattern) + "', at byte " + std::to_string(where) + ": " + std::string(what)};
}

/// The pattern in PCRE2's words.
Result<std::string> translate(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    if (in_class)
      if (const auto what = refused_in_class(rest); !what.empty())
        return cannot_read(pattern, i, std::string(what) + " is not supported");
    if (rest.starts_with("\\h") || rest.starts_with("\\H")) return cannot_read(pattern, i, "\\h is not supported");
    if (in_class && rest.starts_with("[:")) {
      const std::size_t end = std::min(rest.find(":]"), rest.size() - 2) + 2;
      out += rest.substr(0, end);
      i += end - 1;
    } else if (rest.starts_with("\\s")) {
      out += in_class ? std::string(kBlanks) : "[" + std::string(kBlanks) + "]";
      ++i;
    } else if (rest.starts_with("\\S")) {
      out += "[^" + std::string(kBlanks) + "]";
      ++i;
    } else if (rest[0] == '\\' && rest.size() > 1) {
      out += rest.substr(0, 2);
      ++i;
    } else {
      if (rest[0] == '[') in_class = true;
      if (rest[0] == ']') in_class = false;
      out += rest[0];
    }
  }
  return out;
}

using CodeHandle = std::unique_ptr<pcre2_code, void (*)(pcre2_code*)>;
using CompileContextHandle = std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context*)>;
using MatchContextHandle = std::unique_ptr<pcre2_match_context, void (*)(pcre2_match_context*)>;
using MatchHandle = std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)>;

PCRE2_SPTR subject(std::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

}  // namespace

struct SplitScratch::State {
  MatchHandle match{pcre2_match_data_create(1, nullptr), pcre2_match_data_free};
};

SplitScratch::SplitScratch() : state_(std::make_unique<State>()) {
  CARNOT_CHECK(state_->match != nullptr, "out of memory");
}
SplitScratch::SplitScratch(SplitScratch&&) noexcept = default;
SplitScratch::~SplitScratch() = default;

struct SplitPattern::State {
  CodeHandle code;
  MatchContextHandle limits;
};

SplitPattern::SplitPattern(std::unique_ptr<State> state) : state_(std::move(state)) {}
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;
SplitPattern::~SplitPattern() = default;

Result<SplitPattern> SplitPattern::compile(std::string_view pattern) {
  CARNOT_ASSIGN_OR_RETURN(const auto translated, translate(pattern));
  return compile_with(translated, PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C);
}

Result<SplitPattern> SplitPattern::literal(std::string_view text) {
  return compile_with(text, PCRE2_UTF | PCRE2_LITERAL);
}

Result<SplitPattern> SplitPattern::compile_with(std::string_view pattern, unsigned options) {
  int error = 0;
  std::size_t where = 0;
  const CompileContextHandle context(pcre2_compile_context_create(nullptr), pcre2_compile_context_free);
  MatchContextHandle limits(pcre2_match_context_create(nullptr), pcre2_match_context_free);
  CARNOT_CHECK(context && limits, "out of memory");
  pcre2_set_max_pattern_length(context.get(), kMaxPatternBytes);
  pcre2_set_parens_nest_limit(context.get(), kMaxPatternDepth);
  pcre2_set_match_limit(limits.get(), kMaxMatchSteps);
  pcre2_set_heap_limit(limits.get(), kMaxMatchKilobytes);
  CodeHandle code(pcre2_compile(subject(pattern), pattern.size(), options, &error, &where, context.get()),
                  pcre2_code_free);
  if (!code) {
    const std::string_view shown = pattern.substr(0, kShownPattern);
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(error, message.data(), message.size());
    return cannot_read(shown, where, reinterpret_cast<const char*>(message.data()));
  }
  // Without JIT support in the library, pcre2_match interprets.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return SplitPattern(std::make_unique<State>(State{std::move(code), std::move(limits)}));
}

SplitPattern::Search SplitPattern::find(std::string_view text, std::size_t start, SplitScratch& scratch,
                                        Match& match) const {
  pcre2_match_data* found = scratch.state_->match.get();
  const auto search = [&](std::uint32_t options) {
    return pcre2_match(state_->code.get(), subject(text), text.size(), start,
                       PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | options, found, state_->limits.get());
  };
  int status = search(0);
  if (status == PCRE2_ERROR_JIT_STACKLIMIT) status = search(PCRE2_NO_JIT);
  if (status == PCRE2_ERROR_NOMATCH) return Search::Nothing;
  if (status < 0) return Search::Exceeded;
  const std::size_t* bounds = pcre2_get_ovector_pointer(found);
  match = {.begin = bounds[0], .end = bounds[1]};
  return match.begin >= start && match.end > match.begin ? Search::Found : Search::Nothing;
}

Error SplitPattern::limit_exceeded(std::size_t size, std::size_t at) {
  return {"the split pattern takes more than " + std::to_string(kMaxMatchSteps) + " steps at byte " +
          std::to_string(at) + " of a text of " + std::to_string(size) + " bytes"};
}

}  // namespace carnot
