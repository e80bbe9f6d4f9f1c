#include "carnot/generate/loaded_model.h"

#include "carnot/nn/adapter_folder.h"
#include "carnot/train/find_run.h"
#include "carnot/train/model_files.h"
#include "carnot/train/recipe.h"
#include "carnot/train/workbench.h"

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
      const auto recipe = Recipe::load(*config, {});
      if (!recipe) return recipe.error();
      if (recipe->tokenizer.chat != "auto") return recipe->tokenizer.chat;
    }
  }
  if (const auto jinja = chat_template(files)) return std::string(chat_family_of_template(*jinja));
  const std::string usual = loaded.model->config().family == "qwen3" ? "qwen3" : "qwen2.5";
  return make_chat_family(usual, *loaded.tokenizer) ? usual : std::string();
}

}  // namespace

Result<LoadedModel> load_for_generation(const ModelRequest& request) {
  const RunOptions run{.threads = request.threads, .device = request.device, .dtype = request.dtype};
  if (const Status status = Workbench::prepare_device(run); !status) return status.error();
  const auto folder = find_model(request.path);
  if (!folder) return folder.error();
  LoadedModel loaded{.folder = *folder};
  auto tokenizer = Tokenizer::load(*folder);
  if (!tokenizer) return tokenizer.error();
  loaded.tokenizer = std::make_unique<Tokenizer>(std::move(tokenizer).value());
  auto model = load_policy(*folder, tensor_options(run));
  if (!model) return model.error();
  loaded.model = std::make_unique<Model>(std::move(model).value());
  const auto files = read_model_files(*folder, *folder);
  if (!files) return files.error();
  auto generation = generation_config(*files, folder->string());
  if (!generation) return generation.error();
  loaded.generation = std::move(generation).value();
  const auto name = chat_name(request, loaded, *files);
  if (!name) return name.error();
  if (name->empty()) return loaded;
  auto chat = make_chat_family(*name, *loaded.tokenizer);
  if (!chat) return Error{"--chat: " + chat.error().message};
  loaded.chat = std::move(chat).value();
  return loaded;
}

}  // namespace carnot
