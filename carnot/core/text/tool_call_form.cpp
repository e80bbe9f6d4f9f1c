#include "carnot/core/text/tool_call_form.h"

#include <algorithm>

namespace carnot {

void ToolCallForm::write(LabelledText& text, std::string_view content, std::span<const ToolCall> calls,
                         SpanKind kind) const {
  for (const CallText& one : written(content, calls)) text.add(one.of_format ? SpanKind::Template : kind, one.text);
}

std::string ToolCallForm::text_of(std::string_view content, std::span<const ToolCall> calls) const {
  std::string text;
  for (const CallText& one : written(content, calls)) text += one.text;
  return text;
}

std::span<const ToolCallForm* const> tool_call_forms() {
  static const ToolCallForm* const forms[] = {&tagged_tool_calls(),    &bare_tool_call(),
                                              &listed_tool_calls(),    &spaced_listed_tool_calls(),
                                              &phi_tool_calls(),       &granite_tool_calls(),
                                              &named_tool_calls(),     &named_tool_calls_with_ids(),
                                              &parameter_tool_calls(), &json_parameter_tool_calls(),
                                              &olmo_tool_calls(),      &lfm_tool_calls()};
  return forms;
}

const ToolCallForm* form_asked_for(std::string_view prompt, std::span<const std::string> added) {
  const auto in_prompt = [&](std::string_view mark) { return prompt.find(mark) != std::string_view::npos; };
  const auto is_added = [&](std::string_view mark) { return std::ranges::find(added, mark) != added.end(); };
  const ToolCallForm* found = nullptr;
  // Of two that fit, the one with more marks: <tool_call> with <function= in it is not the tagged form.
  const auto look = [&](const auto& known) {
    for (const ToolCallForm* form : tool_call_forms())
      if (const auto marks = form->marks();
          !marks.empty() && std::ranges::all_of(marks, known) && (!found || marks.size() > found->marks().size()))
        found = form;
  };
  look(in_prompt);
  if (found == nullptr) look([&](std::string_view mark) { return in_prompt(mark) || is_added(mark); });
  return found;
}

}  // namespace carnot
