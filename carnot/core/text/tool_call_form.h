// text/tool_call_form.h -- the forms in which models write calls of functions: each is written, read and cut off here.
//
// docs/models.md says which models write which.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"
#include "carnot/core/text/labelled_text.h"

namespace carnot {

/// Functions that the policy may call, each the JSON text of {"type": "function", "function": {...}}.
using Tools = std::span<const std::string>;

/// A stretch of an assistant message that calls functions.
struct CallText {
  std::string text{};
  bool of_format = false;  ///< a mark of the form: control tokens in it are tokens, in arguments they are text
};

/// An assistant message that calls functions, in one form.
class ToolCallForm {
 public:
  virtual ~ToolCallForm() = default;

  /// The message: its content, where the form has text next to calls, and the calls.
  /// REQUIRES: at least one call; only one where has_one_call(); arguments are JSON objects.
  virtual std::vector<CallText> written(std::string_view content, std::span<const ToolCall> calls) const = 0;
  virtual bool has_one_call() const { return false; }

  /// The calls in a message, maybe none. Fails with what is wrong with them, for the policy to read. `tools`, as they
  /// were offered, say what values are in forms that write strings without quotes.
  virtual Result<std::vector<ToolCall>> parse(std::string_view text, Tools tools) const = 0;
  /// What a message says next to its calls, as written() would have it back. REQUIRES: parse() reads calls in it.
  virtual std::string_view beside(std::string_view) const { return {}; }

  /// Texts that are in each message with calls, and that a prompt which asks for this form names; empty if it has none.
  virtual std::span<const std::string_view> marks() const { return {}; }

  /// Adds the message as Template, where it is the form's own, and as `kind`.
  void write(LabelledText& text, std::string_view content, std::span<const ToolCall> calls, SpanKind kind) const;
  /// The message as one text.
  std::string text_of(std::string_view content, std::span<const ToolCall> calls) const;
};

/// <tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call>, any number of them after the content (Hermes, Qwen2.5,
/// Qwen3, Granite 4, SmolLM3).
const ToolCallForm& tagged_tool_calls();
/// {"name": ..., "parameters": {...}}: one call is the whole message (Llama 3.1). A <|python_tag|> before it is read.
const ToolCallForm& bare_tool_call();
/// [TOOL_CALLS][{"name": ..., "arguments": {...}, "id": ...}, ...]: calls are the whole message (Mistral).
const ToolCallForm& listed_tool_calls();
/// The same with a space after the control token (Mistral before Tekken).
const ToolCallForm& spaced_listed_tool_calls();
/// <|tool_call|>[{"name": ..., "arguments": {...}}, ...] after the content (Granite 3).
const ToolCallForm& granite_tool_calls();
/// The same before <|/tool_call|> (Phi-4-mini), which may be missing in what is read: the model often leaves it out.
const ToolCallForm& phi_tool_calls();
/// [TOOL_CALLS]name[ARGS]{...} for each call, after the content (Ministral 3, Devstral).
const ToolCallForm& named_tool_calls();
/// [TOOL_CALLS]name[CALL_ID]id[ARGS]{...} for each call: calls are the whole message (Mistral Small 3.2).
const ToolCallForm& named_tool_calls_with_ids();
/// <tool_call>\n<function=name>\n<parameter=key>\nvalue\n</parameter>\n</function>\n</tool_call> after the content
/// (Qwen3-Coder, Qwen3.5). Strings stand there as they are; True, False and None as in Python, other values as JSON.
const ToolCallForm& parameter_tool_calls();
/// The same with true, false and null (Qwen3.6).
const ToolCallForm& json_parameter_tool_calls();
/// <function_calls>name(key=value, ...)</function_calls> after the content, calls on lines of their own, values as JSON
/// (OLMo 3). Python's values are read, too.
const ToolCallForm& olmo_tool_calls();
/// <|tool_call_start|>[name(key=value, ...), ...]<|tool_call_end|> after the content, values as in Python (LFM2).
const ToolCallForm& lfm_tool_calls();

/// All of the above.
std::span<const ToolCallForm* const> tool_call_forms();

/// The form that a prompt asks for, by its marks: all of them are in `prompt`, or are `added` tokens. Null if there is
/// none.
const ToolCallForm* form_asked_for(std::string_view prompt, std::span<const std::string> added);

}  // namespace carnot
