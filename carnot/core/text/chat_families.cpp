#include "carnot/core/text/chat_families.h"

#include <algorithm>

#include "carnot/core/base/strings.h"
#include "carnot/core/text/chat_ml.h"
#include "carnot/core/text/llama_chat.h"
#include "carnot/core/text/mistral_chat.h"
#include "carnot/core/text/template_chat.h"

namespace carnot {
namespace {

constexpr ChatMlStyle kChatMl[] = {
    {.name = "chatml"},
    {.name = "qwen2", .default_system = "You are a helpful assistant."},
    {.name = "qwen2.5",
     .default_system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.",
     .tool_as_user = true},
    {.name = "qwen3", .tool_as_user = true},
    {.name = "qwen3_no_think", .tool_as_user = true, .head_end = "<think>\n\n</think>\n\n"},
};
constexpr HeaderStyle kHeader[] = {{.name = "llama3"}, {.name = "llama3.1", .dated = true}};
constexpr MistralStyle kMistral[] = {{.name = "mistral", .blank = " "}, {.name = "mistral_nemo"}};

/// What a published template contains, and what it must not, to be a family's.
struct FamilyMarks {
  std::string_view family;
  std::string_view holds[2];
  std::string_view lacks;
};
/// The first row that fits counts.
constexpr FamilyMarks kMarks[] = {
    {"llama3.1", {"<|start_header_id|>", "Cutting Knowledge Date: December 2023"}, "<|im_start|>"},
    {"llama3", {"<|start_header_id|>", "<|eot_id|>"}, "tool"},
    {"mistral", {"\"[AVAILABLE_TOOLS] [\"", "\"[INST] \""}, "[SYSTEM_PROMPT]"},
    {"mistral_nemo", {"\"[AVAILABLE_TOOLS][\"", "\"[INST]\""}, "[SYSTEM_PROMPT]"},
    {"llama2", {"<<SYS>>", "bos_token + '[INST] '"}, "tool"},
    {"qwen2.5", {"<|im_start|>", "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."}, "<think>"},
    {"qwen3", {"<|im_start|>", "reasoning_content.strip('\\n')"}, "You are Qwen"},
    {"qwen2", {"<|im_start|>system\\nYou are a helpful assistant.<|im_end|>", ""}, "tool"},
    {"chatml", {"'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'", ""}, "system"},
};

/// Calls visit(name, added tokens that it needs, function that makes it) for each family.
template <class Visit>
void for_each_family(const Visit& visit) {
  const auto all_of = [&]<class Family>(std::type_identity<Family>, const auto& styles) {
    for (const auto& style : styles)
      visit(style.name, std::span<const std::string_view>(Family::kTokens),
            [&](const Tokenizer& tokenizer) -> std::unique_ptr<ChatFamily> {
              return std::make_unique<Family>(style, tokenizer);
            });
  };
  all_of(std::type_identity<ChatMl>(), kChatMl);
  all_of(std::type_identity<HeaderChat>(), kHeader);
  visit(Llama2Chat::kName, std::span<const std::string_view>(Llama2Chat::kTokens),
        [](const Tokenizer& tokenizer) -> std::unique_ptr<ChatFamily> {
          return std::make_unique<Llama2Chat>(tokenizer);
        });
  all_of(std::type_identity<MistralChat>(), kMistral);
}

}  // namespace

Result<std::unique_ptr<ChatFamily>> make_chat_family(std::string_view name, const Tokenizer& tokenizer) {
  std::unique_ptr<ChatFamily> made;
  std::vector<std::string> missing;
  for_each_family([&](std::string_view family, std::span<const std::string_view> tokens, const auto& make) {
    if (family != name) return;
    for (const std::string_view token : tokens) {
      const auto id = tokenizer.id_of(token);
      if (!id || !tokenizer.is_added(*id)) missing.emplace_back(token);
    }
    if (missing.empty()) made = make(tokenizer);
  });
  if (made) return made;
  if (!missing.empty())
    return Error{"chat family " + std::string(name) + ": the tokenizer lacks the added tokens " + join(missing)};
  if (name == TemplateChat::kName) return Error{"chat family template: there is no model folder that has one"};
  return Error{"no chat family '" + std::string(name) + "'; expected one of " + join(chat_family_names())};
}

std::vector<std::string> chat_family_names() {
  std::vector<std::string> names;
  for_each_family([&](std::string_view family, const auto&, const auto&) { names.emplace_back(family); });
  names.emplace_back(TemplateChat::kName);
  return names;
}

std::string_view chat_family_of_template(std::string_view jinja) {
  const auto holds = [&](std::string_view text) { return jinja.find(text) != std::string_view::npos; };
  for (const FamilyMarks& marks : kMarks)
    if (holds(marks.holds[0]) && holds(marks.holds[1]) && !holds(marks.lacks)) return marks.family;
  return {};
}

}  // namespace carnot
