// hf/folder_chat.h -- the chat format that a model folder names by its template.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"
#include "carnot/core/hf/model_files.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/text/template_renderer.h"

namespace carnot {

/// The name of the known format whose template is among `files`, or "template" where it is no known one's; nothing
/// without a template.
std::optional<std::string> folder_chat_name(const ModelFiles& files);

/// The template among `files` with the texts that it may name: every ..._token of tokenizer_config.json and
/// special_tokens_map.json, the former first. Nothing without a template.
std::optional<ChatTemplate> folder_template(const ModelFiles& files);

/// The format of that name over a tokenizer, which must outlive it: a known one, or "template" (TemplateChat::kNames),
/// the one among `files`.
Result<std::unique_ptr<ChatFamily>> make_folder_chat(std::string_view name, const ModelFiles& files,
                                                     const Tokenizer& tokenizer);

}  // namespace carnot
