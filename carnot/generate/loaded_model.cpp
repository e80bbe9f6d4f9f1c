#include "carnot/generate/loaded_model.h"

#include <algorithm>

#include "carnot/base/log.h"
#include "carnot/hf/adapter_folder.h"
#include "carnot/hf/model_files.h"
#include "carnot/hf/weights.h"
#include "carnot/run/find_run.h"
#include "carnot/text/chat_families.h"
#include "carnot/train/model_bundle.h"
#include "carnot/train/recipe.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// The chat format by name: the one asked for, the run's, the one of the folder's template, or Qwen's where the
/// tokenizer has its tokens; empty where the model has none.
Result<std::string> chat_name(const ModelRequest& request, const LoadedModel& loaded, const ModelFiles& files) {
  const fs::path& folder = loaded.folder;
  if (!request.chat.empty()) return request.chat;
  if (fs::exists(folder / "trainer_state.json")) {
    const auto config = find_config(folder);
    if (config) {
      const auto recipe = load_recorded(*config, {});
      if (!recipe) return recipe.error();
      if (recipe->tokenizer.chat != "auto") return recipe->tokenizer.chat;
    }
  }
  if (const auto jinja = chat_template(files)) return std::string(chat_family_of_template(*jinja));
  const std::string usual = loaded.model->config().family == "qwen3" ? "qwen3" : "qwen2.5";
  return make_chat_family(usual, *loaded.tokenizer) ? usual : std::string();
}

/// The folder, found on a device that is ready.
Result<LoadedModel> find_folder(const ModelRequest& request, const RunOptions& run) {
  if (const Status status = ModelBundle::prepare_device(run); !status) return status.error();
  const auto folder = find_model(request.path);
  if (!folder) return folder.error();
  return LoadedModel{.folder = *folder};
}

Status load_weights(LoadedModel& loaded, const RunOptions& run) {
  auto model = load_policy(loaded.folder, tensor_options(run));
  if (!model) return model.error();
  loaded.model = std::make_unique<Model>(std::move(model).value());
  return Done{};
}

RunOptions run_options(const ModelRequest& request) {
  return {.threads = request.threads, .device = request.device, .dtype = request.dtype};
}

}  // namespace

Result<LoadedModel> load_for_generation(const ModelRequest& request) {
  const RunOptions run = run_options(request);
  auto loaded = find_folder(request, run);
  if (!loaded) return loaded;
  auto tokenizer = Tokenizer::load(loaded->folder);
  if (!tokenizer) return tokenizer.error();
  loaded->tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer).value());
  if (const Status status = load_weights(*loaded, run); !status) return status.error();
  const auto files = read_model_files(loaded->folder, loaded->folder);
  if (!files) return files.error();
  auto generation = generation_config(*files, loaded->folder.string());
  if (!generation) return generation.error();
  loaded->generation = std::move(generation).value();
  const auto name = chat_name(request, *loaded, *files);
  if (!name) return name.error();
  loaded->unknown_template = name->empty() && chat_template(*files);
  if (name->empty()) return loaded;
  auto chat = make_chat_family(*name, *loaded->tokenizer);
  if (!chat) return Error{"--chat: " + chat.error().message};
  loaded->chat = std::move(chat).value();
  return loaded;
}

Result<LoadedModel> load_for_log_probs(const ModelRequest& request) {
  const RunOptions run = run_options(request);
  auto loaded = find_folder(request, run);
  if (!loaded) return loaded;
  if (auto tokenizer = Tokenizer::load(loaded->folder))
    loaded->tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer).value());
  else
    loaded->tokenizer_problem = tokenizer.error().message;
  if (const Status status = load_weights(*loaded, run); !status) return status.error();
  return loaded;
}

std::vector<TokenId> end_tokens(const LoadedModel& model) {
  std::vector<TokenId> tokens;
  for (const auto* ends : {&model.model->config().eos_tokens, &model.generation.eos_tokens})
    for (const TokenId end : *ends)
      if (std::find(tokens.begin(), tokens.end(), end) == tokens.end()) tokens.push_back(end);
  return tokens;
}

std::vector<TokenId> answer_end_tokens(const LoadedModel& model) {
  std::vector<TokenId> tokens;
  if (model.chat) tokens = model.chat->stop_tokens();
  for (const TokenId end : end_tokens(model))
    if (std::find(tokens.begin(), tokens.end(), end) == tokens.end()) tokens.push_back(end);
  return tokens;
}

std::optional<SamplingOptions> folder_sampling(const LoadedModel& model) {
  const GenerationConfig& folder = model.generation;
  if (!folder.do_sample.value_or(false)) return std::nullopt;
  return SamplingOptions{.temperature = folder.temperature.value_or(1),
                         .top_p = folder.top_p.value_or(1),
                         .top_k = folder.top_k.value_or(0)};
}

void warn_of_ignored_settings(const LoadedModel& model) {
  for (const std::string& setting : model.generation.ignored)
    log_warning(model.folder.string() + "/generation_config.json: " + setting + " is not applied");
}

}  // namespace carnot
