#include "carnot/core/hf/folder_chat.h"

#include "carnot/core/base/json.h"
#include "carnot/core/text/chat_families.h"
#include "carnot/core/text/template_chat.h"

namespace carnot {
namespace {

/// A token as transformers writes it: its text, or an object with it.
std::optional<std::string> token_text(const nlohmann::json& value) {
  const nlohmann::json text = value.is_object() ? value.value("content", nlohmann::json()) : value;
  if (!text.is_string()) return std::nullopt;
  return text.get<std::string>();
}

}  // namespace

std::optional<std::string> folder_chat_name(const ModelFiles& files) {
  const auto jinja = chat_template(files);
  if (!jinja) return std::nullopt;
  const std::string_view known = chat_family_of_template(*jinja);
  return std::string(known.empty() ? TemplateChat::kName : known);
}

std::optional<ChatTemplate> folder_template(const ModelFiles& files) {
  auto jinja = chat_template(files);
  if (!jinja) return std::nullopt;
  ChatTemplate made{.jinja = std::move(*jinja)};
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto file = files.find(name);
    if (file == files.end()) continue;
    const auto json = parse_json_object(file->second, name);
    if (!json) continue;
    for (const auto& [key, value] : json->items())
      if (const auto text = key.ends_with("_token") ? token_text(value) : std::nullopt) made.tokens.emplace(key, *text);
  }
  return made;
}

Result<std::unique_ptr<ChatFamily>> make_folder_chat(std::string_view name, const ModelFiles& files,
                                                     const Tokenizer& tokenizer) {
  if (!TemplateChat::is_name(name)) return make_chat_family(name, tokenizer);
  auto found = folder_template(files);
  if (!found) return Error{"template: the model folder has no chat template; expected chat_template.jinja in it"};
  found->thinking = TemplateChat::thinking_of(name);
  auto chat = TemplateChat::start(*found, tokenizer);
  if (!chat) return Error{"the model's chat template cannot be used: " + chat.error().message};
  return std::unique_ptr<ChatFamily>(std::move(chat).value());
}

}  // namespace carnot
