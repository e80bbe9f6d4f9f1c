// data/tokens.h -- token ids and the kinds of span they belong to.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace carnot {

using TokenId = std::int32_t;

/// The kind of a run of tokens. Think and Action are parts of what the policy sampled (or, for a prefix such as
/// `<think>` that the prompt supplies, are continued by it); the other three come from outside.
enum class SpanKind : std::uint8_t {
  Template,     ///< chat scaffolding: role headers, separators
  Prompt,       ///< system and user text of the task
  Think,        ///< sampled, but not the action: reasoning, tags, end-of-message
  Action,       ///< sampled, the part that the environment acts on
  Observation,  ///< the environment's answer
};

constexpr SpanKind last_of(SpanKind) { return SpanKind::Observation; }
inline constexpr std::string_view kSpanKindNames[] = {"template", "prompt", "think", "action", "observation"};
inline std::string_view name_of(SpanKind kind) { return kSpanKindNames[static_cast<std::size_t>(kind)]; }

/// Half-open range of token offsets.
struct Span {
  SpanKind kind = SpanKind::Template;
  int begin = 0;
  int end = 0;

  bool operator==(const Span&) const = default;
};

/// Tokens with the spans that cover them: sorted, disjoint, without gaps.
struct SpannedTokens {
  std::vector<TokenId> tokens{};
  std::vector<Span> spans{};
};

/// Appends a span of `kind` over the next `count` tokens, merging it with a last span of the same kind.
void extend_spans(std::vector<Span>& spans, SpanKind kind, int count);

/// Appends `more` to `to`, shifting its spans.
void append(SpannedTokens& to, const SpannedTokens& more);

}  // namespace carnot
