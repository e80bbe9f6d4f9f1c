// run/checkpoint.h -- everything a run continues from: weights, tokenizer, optimizers, counters.
//
// A checkpoint folder is a Hugging Face model folder (config.json, model.safetensors, tokenizer.json and the files of
// hf/model_files.h) with optimizer.safetensors, critic.safetensors, reference.safetensors where there are such, and
// trainer_state.json. With adapters there is a PEFT folder adapter/ in place of model.safetensors, base_model.json says
// where the weights below them are (hf/base_model.h), and reference.safetensors holds the reference's adapters alone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/optim/optimizer.h"
#include "carnot/core/run/trainer_state.h"
#include "carnot/core/train/model_bundle.h"
#include "carnot/core/train/recipe.h"

namespace carnot {

/// What a checkpoint refers to. Null: none.
struct CheckpointParts {
  ModelBundle* bundle = nullptr;
  Optimizer* optimizer = nullptr;
  Optimizer* critic_optimizer = nullptr;
  std::int64_t sampled_tokens = 0;                    ///< by all training steps so far
  std::map<std::string, double> coefficients{};       ///< that change from step to step (adaptive KL, entropy bonus)
  std::map<std::string, double> alarms{};             ///< AlarmWatch::memory()
  std::map<std::string, double> unwritten_metrics{};  ///< of the step, where its evaluation is still to be made
};

/// What the optimizers keep, as it goes into a checkpoint.
struct OptimizerStates {
  Optimizer::Tensors policy{}, critic{};
};

/// Called by all ranks that share the optimizers, before the first of them saves a checkpoint with what it gets.
OptimizerStates optimizer_states(const CheckpointParts& parts);

/// Writes checkpoints/global_step_N, whole or not at all, then removes what `train` does not keep of earlier ones.
/// Weights under adapters that are in no folder yet are stored first, once for all checkpoints, in `base` by
/// `checkpoints`.
Status save_checkpoint(const std::filesystem::path& checkpoints, std::int64_t step, const CheckpointParts& parts,
                       const OptimizerStates& optimizers, const RunOptions& run, const TrainOptions& train);

/// Takes the optimizers out of a run's checkpoints: nothing will continue it.
Status drop_optimizers(const std::filesystem::path& checkpoints);

/// Fills the optimizer from the file that holds its state.
Status load_optimizer(Optimizer& optimizer, const std::filesystem::path& file, const UpdateCounts& counts);

/// Fills weights and optimizers from a checkpoint folder that was verified. Says what is missing or misshapen. Warns
/// where the checkpoint was written with other kernels than those that `run` computes with: its bits will differ.
Result<TrainerState> load_checkpoint(const std::filesystem::path& checkpoint, const CheckpointParts& parts,
                                     const RunOptions& run);

}  // namespace carnot
