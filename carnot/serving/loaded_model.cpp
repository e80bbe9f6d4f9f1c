#include "carnot/serving/loaded_model.h"

#include <algorithm>

#include "carnot/core/base/log.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/folder_chat.h"
#include "carnot/core/hf/model_files.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/text/chat_families.h"
#include "carnot/core/text/template_chat.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// The run's chat format, the one of the folder's template, or Qwen's where the tokenizer has its tokens; empty if
/// the model has none.
Result<std::string> usual_chat(const LoadedModel& loaded, const ModelFiles& files) {
  const fs::path& folder = loaded.folder;
  if (fs::exists(folder / "trainer_state.json")) {
    const auto config = find_config(folder);
    if (config) {
      CARNOT_ASSIGN_OR_RETURN(const auto recipe, load_recorded(*config, {}));
      if (recipe.tokenizer.chat != "auto") return recipe.tokenizer.chat;
    }
  }
  if (const auto named = folder_chat_name(files)) return *named;
  const std::string usual = loaded.model && loaded.model->config().family == "qwen3" ? "qwen3" : "qwen2.5";
  return make_chat_family(usual, *loaded.tokenizer) ? usual : std::string();
}

Status choose_chat(LoadedModel& loaded, const ModelRequest& request, const ModelFiles& files) {
  CARNOT_ASSIGN_OR_RETURN(const auto name,
                          request.chat.empty() ? usual_chat(loaded, files) : Result<std::string>(request.chat));
  if (name.empty()) return Done{};
  auto chat = make_folder_chat(name, files, *loaded.tokenizer);
  if (chat)
    loaded.chat = std::move(chat).value();
  else if (request.chat.empty() && TemplateChat::is_name(name))
    loaded.chat_problem = chat.error().message;
  else
    return Error{"--chat: " + chat.error().message};
  return Done{};
}

/// The folder, found on a device that is ready.
Result<LoadedModel> find_folder(const ModelRequest& request, const RunOptions& run) {
  CARNOT_RETURN_IF_ERROR(ModelBundle::prepare_device(run));
  CARNOT_ASSIGN_OR_RETURN(const auto folder, find_model(request.path));
  return LoadedModel{.folder = folder};
}

Status load_weights(LoadedModel& loaded, const RunOptions& run, bool trains) {
  CARNOT_ASSIGN_OR_RETURN(auto model, trains ? load_merged(loaded.folder, tensor_options(run))
                                             : load_policy(loaded.folder, tensor_options(run)));
  loaded.model = std::make_unique<Model>(std::move(model));
  if (!trains) loaded.model->keep_packed_weights_alone();
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
  CARNOT_ASSIGN_OR_RETURN(auto tokenizer, Tokenizer::load(loaded->folder));
  loaded->tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  CARNOT_RETURN_IF_ERROR(load_weights(*loaded, run, request.trains));
  CARNOT_ASSIGN_OR_RETURN(const auto files, read_model_files(loaded->folder, loaded->folder));
  CARNOT_ASSIGN_OR_RETURN(auto generation, generation_config(files, loaded->folder.string()));
  loaded->generation = std::move(generation);
  CARNOT_RETURN_IF_ERROR(choose_chat(*loaded, request, files));
  return loaded;
}

Result<LoadedModel> load_for_texts(const ModelRequest& request) {
  LoadedModel loaded{.folder = fs::is_regular_file(request.path) ? request.path.parent_path() : request.path};
  CARNOT_ASSIGN_OR_RETURN(auto tokenizer, Tokenizer::load(loaded.folder));
  loaded.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer));
  CARNOT_ASSIGN_OR_RETURN(const auto files, read_model_files(loaded.folder, loaded.folder));
  CARNOT_RETURN_IF_ERROR(choose_chat(loaded, request, files));
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
  CARNOT_RETURN_IF_ERROR(load_weights(*loaded, run, request.trains));
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
