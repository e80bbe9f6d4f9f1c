// train/model_bundle.h -- what a run works with: tokenizer, chat format, the policy, and what the method asks for
// next to it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "carnot/core/base/result.h"
#include "carnot/core/engine/decoder_runner.h"
#include "carnot/core/engine/engine.h"
#include "carnot/core/hf/base_model.h"
#include "carnot/core/hf/model_files.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/nn/value_model.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

struct ModelBundle {
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ChatFamily> chat;
  ModelConfig config{};                             ///< the policy's shape
  std::filesystem::path pretrained{};               ///< the folder of model.path; empty: random weights
  std::optional<std::filesystem::path> checkpoint;  ///< that the policy comes from
  std::unique_ptr<Model> policy;
  std::optional<BaseModel> base;       ///< below the policy's adapters; none until random weights are stored
  ModelFiles model_files;              ///< that every checkpoint carries on
  std::unique_ptr<Model> reference;    ///< the policy at the start of training, where the method needs it
  std::unique_ptr<ValueModel> critic;  ///< where the method needs values

  /// Threads and device as the recipe says. Fails if the device is not there.
  static Status prepare_device(const RunOptions& run);

  /// Prepares the environment, then makes tokenizer and chat and finds out the policy's shape: of a checkpoint folder,
  /// of model.path, or of random weights with a tokenizer trained from the environment's texts. No weights yet. The end
  /// tokens of config.json and generation_config.json end a message as the chat format's do. Fills in what a folder
  /// decides: the recipe's lora.*, a tokenizer.chat and a dtype of "auto"; and train.steps, where the recipe counts
  /// epochs.
  static Result<ModelBundle> open(Recipe& recipe, const std::optional<std::filesystem::path>& checkpoint = {});

  /// The policy's weights and adapters. SFT or a checkpoint may then fill them.
  Status load_policy(const Recipe& recipe);

  /// Both.
  static Result<ModelBundle> make(Recipe& recipe, const std::optional<std::filesystem::path>& checkpoint = {});

  /// Adds the reference and the critic that the recipe's measurements need, starting from the policy's present weights.
  void add_companions(const Recipe& recipe);

  at::TensorOptions tensor_options() const { return policy->options(); }
};

/// REQUIRES: the dtype is settled, by open().
at::TensorOptions tensor_options(const RunOptions& run);

/// This machine's kernels for the number type of `run`: "avx512 (LibTorch's: AVX512)". Where the words are equal,
/// forward passes have equal bits.
std::string own_kernels(const RunOptions& run);

/// A KV cache and an engine for `trajectories` at a time.
struct Generation {
  std::unique_ptr<DecoderRunner> runner;
  std::unique_ptr<Engine> engine;

  /// Between rollouts: KvCache::give_back_memory(). REQUIRES: the engine has no sequences.
  void give_back_memory();
};
Generation make_generation(const ModelBundle& bundle, const RolloutSettings& options, std::int64_t trajectories);

/// Blocks of the KV cache for `trajectories` at a time; the largest 64-bit number where there would be more.
std::int64_t cache_blocks(const RolloutSettings& options, std::int64_t trajectories);

/// States of the KV cache for `trajectories` at a time, where the model has them: one of each, of each group's prompt,
/// and of each answer that is scored while sampling, at most one of a trajectory; not more than there are blocks. With
/// fewer, trajectories would wait for one another and be computed again from their start.
std::int64_t cache_states(const RolloutSettings& options, std::int64_t trajectories);

/// Blocks of layers with a window, if the model has them: as many sequences as have states hold what they see, and one
/// forward's rows come in. 0 where all blocks are not more: then these layers have them, as the others.
std::int64_t cache_window_blocks(const RolloutSettings& options, const ModelConfig& model, std::int64_t trajectories);

}  // namespace carnot
