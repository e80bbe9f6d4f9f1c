// text/tool_call_form.h -- the forms in which models write calls of functions: each is written, read and cut off here.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"
#include "carnot/core/text/labelled_text.h"

namespace carnot {

/// An assistant message that calls functions, in one form.
class ToolCallForm {
 public:
  virtual ~ToolCallForm() = default;

  /// What precedes the message's own text: control tokens of the format; empty in most forms.
  virtual std::string head() const { return {}; }
  /// The message: its content, where the form has text next to calls, and the calls.
  /// REQUIRES: at least one call; only one where has_one_call().
  virtual std::string written(std::string_view content, std::span<const ToolCall> calls) const = 0;
  virtual bool has_one_call() const { return false; }

  /// The calls in a message, maybe none. Fails with what is wrong with them, for the policy to read.
  virtual Result<std::vector<ToolCall>> parse(std::string_view text) const = 0;
  /// What a message says next to its calls, as written() would have it back. REQUIRES: parse() reads calls in it.
  virtual std::string_view beside(std::string_view) const { return {}; }

  /// Adds head() as Template and the message as `kind`.
  void write(LabelledText& text, std::string_view content, std::span<const ToolCall> calls, SpanKind kind) const;
};

/// <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>, any number of them after the content (Hermes, Qwen).
const ToolCallForm& tagged_tool_calls();
/// {"name": ..., "parameters": {...}}: one call is the whole message (Llama 3.1). A <|python_tag|> before it is read.
const ToolCallForm& bare_tool_call();
/// [TOOL_CALLS][{"name": ..., "arguments": {...}, "id": ...}, ...]: calls are the whole message (Mistral).
const ToolCallForm& listed_tool_calls();
/// The same with a space after the control token (Mistral before Tekken).
const ToolCallForm& spaced_listed_tool_calls();

/// All of the above.
std::span<const ToolCallForm* const> tool_call_forms();

}  // namespace carnot
