#include "carnot/core/data/tokens.h"

namespace carnot {

void extend_spans(std::vector<Span>& spans, SpanKind kind, int count) {
  if (count == 0) return;
  const int begin = spans.empty() ? 0 : spans.back().end;
  if (!spans.empty() && spans.back().kind == kind) {
    spans.back().end += count;
  } else {
    spans.push_back({kind, begin, begin + count});
  }
}

void append(SpannedTokens& to, const SpannedTokens& more) {
  to.tokens.insert(to.tokens.end(), more.tokens.begin(), more.tokens.end());
  for (const Span& span : more.spans) extend_spans(to.spans, span.kind, span.end - span.begin);
}

}  // namespace carnot
