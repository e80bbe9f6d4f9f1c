#include "carnot/core/hf/model_files.h"

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGeneration = "generation_config.json";
constexpr const char* kTokenizerConfig = "tokenizer_config.json";
constexpr const char* kChatTemplate = "chat_template.jinja";

Status add(ModelFiles& files, const fs::path& folder, const std::string& name) {
  const fs::path path = folder / name;
  std::error_code ignored;
  if (folder.empty() || !fs::is_regular_file(path, ignored)) return Done{};
  CARNOT_ASSIGN_OR_RETURN(auto text, read_file(path));
  files[name] = std::move(text);
  return Done{};
}

}  // namespace

Result<ModelFiles> read_model_files(const fs::path& model, const fs::path& tokenizer) {
  ModelFiles files;
  CARNOT_RETURN_IF_ERROR(add(files, model, kGeneration));
  for (const char* name : {kTokenizerConfig, "special_tokens_map.json", kChatTemplate})
    CARNOT_RETURN_IF_ERROR(add(files, tokenizer, name));
  return files;
}

ModelFiles new_model_files(const ChatFamily& chat) {
  const std::vector<TokenId> stops = chat.stop_tokens();
  const OrderedJson tokenizer_config = {{"clean_up_tokenization_spaces", false},
                                        {"eos_token", chat.tokenizer().bytes_of(stops.front())},
                                        {"tokenizer_class", "PreTrainedTokenizerFast"}};
  return {{kGeneration, generation_config_json(stops)}, {kTokenizerConfig, tokenizer_config.dump(2) + "\n"}};
}

std::optional<std::string> chat_template(const ModelFiles& files) {
  if (const auto jinja = files.find(kChatTemplate); jinja != files.end()) return jinja->second;
  const auto config = files.find(kTokenizerConfig);
  if (config == files.end()) return {};
  const auto json = parse_json_object(config->second, kTokenizerConfig);
  if (!json || !json->contains("chat_template")) return {};
  const auto& value = json->at("chat_template");
  if (value.is_string()) return value.get<std::string>();
  for (const auto& one : value.is_array() ? value : Json::array())
    if (one.is_object() && one.value("name", Json()) == "default" && one.value("template", Json()).is_string())
      return one["template"].get<std::string>();
  return {};
}

Result<GenerationConfig> generation_config(const ModelFiles& files, const std::string& where) {
  const auto found = files.find(kGeneration);
  if (found == files.end()) return GenerationConfig{};
  return parse_generation_config(found->second, where + "/" + kGeneration);
}

}  // namespace carnot
