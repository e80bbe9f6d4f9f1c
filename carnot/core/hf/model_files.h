// hf/model_files.h -- the small files of a Hugging Face model folder that are passed on as they are.
//
// A checkpoint of a model that came from such a folder carries them on, so that transformers finds what it found
// before.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "carnot/core/hf/generation_config.h"
#include "carnot/core/text/chat.h"

namespace carnot {

/// Name to content: generation_config.json, tokenizer_config.json, special_tokens_map.json, chat_template.jinja.
using ModelFiles = std::map<std::string, std::string>;

/// Those that exist: generation_config.json of the model's folder, the others of the tokenizer's. An empty path or
/// one that is no folder has none.
Result<ModelFiles> read_model_files(const std::filesystem::path& model, const std::filesystem::path& tokenizer);

/// What a model made here has in their place.
ModelFiles new_model_files(const ChatFamily& chat);

/// The Jinja template of chat_template.jinja or tokenizer_config.json (of several, the one named "default"); nothing
/// if there is none.
std::optional<std::string> chat_template(const ModelFiles& files);

/// The generation_config.json among them; an empty one if there is none.
Result<GenerationConfig> generation_config(const ModelFiles& files, const std::string& where);

}  // namespace carnot
