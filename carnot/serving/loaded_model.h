// serving/loaded_model.h -- a model with its tokenizer and chat format, from a folder that a user names.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/engine/sampling.h"
#include "carnot/core/hf/generation_config.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {

struct ModelRequest {
  std::filesystem::path path{};  ///< Hugging Face folder, checkpoint, or run folder: its latest checkpoint
  std::string chat{};            ///< empty: the run's, the folder's template's, or that of the model's family
  std::string device = "cpu";
  std::string dtype = "float32";
  int threads = 0;      ///< of the kernels; 0: one per processor
  bool trains = false;  ///< gradients will be computed through the weights
};

struct LoadedModel {
  std::filesystem::path folder{};
  std::unique_ptr<Tokenizer> tokenizer{};  ///< null if load_for_log_probs() found none
  std::string tokenizer_problem{};         ///< then: why
  std::unique_ptr<ChatFamily> chat{};      ///< null if the model has none
  std::string chat_problem{};              ///< then: why its chat template cannot be used; empty without a template
  std::unique_ptr<Model> model{};          ///< null after load_for_texts()
  GenerationConfig generation{};           ///< generation_config.json; empty if the folder has none
};

/// Prepares device and threads and loads. The error says what is missing where.
Result<LoadedModel> load_for_generation(const ModelRequest& request);

/// Tokenizer and chat format alone, without weights.
Result<LoadedModel> load_for_texts(const ModelRequest& request);

/// As load_for_generation() without a chat format, and without a tokenizer where the folder has none that can be read:
/// token ids do not need one.
Result<LoadedModel> load_for_log_probs(const ModelRequest& request);

/// Tokens that end a text: those of config.json and generation_config.json.
std::vector<TokenId> end_tokens(const LoadedModel& model);
/// Those that end an assistant's message: the chat format's, if there is one, then the others.
std::vector<TokenId> answer_end_tokens(const LoadedModel& model);

/// How generation_config.json says to sample, if it does.
std::optional<SamplingOptions> folder_sampling(const LoadedModel& model);

/// A warning for each setting of generation_config.json that is not applied.
void warn_of_ignored_settings(const LoadedModel& model);

}  // namespace carnot
