#include "carnot/core/run/checkpoint.h"

#include <ATen/Functions.h>

#include <array>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/hf/adapter_config.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/base_model.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/run/checkpoint_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// The policy's and the critic's.
const std::array<std::string, 2> kOptimizerFiles{"optimizer.safetensors", "critic_optimizer.safetensors"};

CheckpointFile text_file(const std::string& name, std::string content) {
  return {name, [content = std::move(content)](const fs::path& path) { return write_file_atomically(path, content); }};
}

std::vector<NamedTensor> as_named(const Optimizer::Tensors& tensors) {
  std::vector<NamedTensor> all;
  for (const auto& [name, tensor] : tensors) all.push_back({name, tensor});
  return all;
}

CheckpointFile tensor_file(const std::string& name, std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) named.tensor = named.tensor.detach().to(at::kCPU).contiguous();
  return {name, [tensors = std::move(tensors)](const fs::path& path) {
            return write_safetensors(path, tensors, {{"format", "pt"}});
          }};
}

CheckpointFile weights_file(const std::string& name, const Model& model) {
  std::vector<StoredWeight> weights = stored_weights(model);
  for (StoredWeight& weight : weights)
    for (at::Tensor& part : weight.parts) part = part.detach().to(at::kCPU).contiguous();
  return {name, [weights = std::move(weights)](const fs::path& path) {
            return write_safetensors(path, file_tensors(weights), {{"format", "pt"}});
          }};
}

UpdateCounts counts_of(const Optimizer& optimizer) {
  return {.updates = optimizer.num_updates(), .skipped = optimizer.num_skipped()};
}

std::string state_json(std::int64_t step, const CheckpointParts& parts, const RunOptions& run) {
  TrainerState state{.step = step,
                     .seed = run.seed,
                     .sampled_tokens = parts.sampled_tokens,
                     .kernels = own_kernels(run),
                     .coefficients = parts.coefficients,
                     .alarms = parts.alarms,
                     .unwritten_metrics = parts.unwritten_metrics};
  if (parts.optimizer) state.optimizer = counts_of(*parts.optimizer);
  if (parts.critic_optimizer) state.critic_optimizer = counts_of(*parts.critic_optimizer);
  return trainer_state_json(state);
}

Status fill(const std::vector<NamedTensor>& weights, const fs::path& file) {
  CARNOT_ASSIGN_OR_RETURN(const auto stored, read_weights(file));
  return copy_tensors(weights, stored.tensors, file.string());
}

Status fill_weights(const Model& model, const fs::path& file) {
  CARNOT_ASSIGN_OR_RETURN(const auto stored, read_weights(file));
  return load_weights(model, stored.tensors, file.string());
}

/// The weights below the policy's adapters: those of a base that is there already have to be the checkpoint's.
Status fill_base(ModelBundle& bundle, const fs::path& checkpoint) {
  CARNOT_ASSIGN_OR_RETURN(auto base, read_base_model(checkpoint));
  if (base && bundle.base && base->sha256 != bundle.base->sha256)
    return Error{checkpoint.string() + ": its adapters were trained on " + base->folder.string() +
                 ", whose files are not those of " + bundle.base->folder.string()};
  if (base && bundle.base) return Done{};
  CARNOT_ASSIGN_OR_RETURN(const auto folder, find_base(checkpoint));
  CARNOT_RETURN_IF_ERROR(fill_weights(*bundle.policy, folder / "model.safetensors"));
  bundle.base = std::move(base);
  return Done{};
}

Status fill_policy(ModelBundle& bundle, const fs::path& folder) {
  const Model& policy = *bundle.policy;
  if (!policy.has_adapters()) return fill_weights(policy, folder / "model.safetensors");
  CARNOT_RETURN_IF_ERROR(fill_base(bundle, folder));
  return fill(peft_tensors(policy), folder / kAdapterFolder / kAdapterWeightsFile);
}

/// Stores the random weights below the policy's adapters.
Status keep_base(ModelBundle& bundle, const fs::path& folder, const std::string& dtype) {
  const Model& policy = *bundle.policy;
  const Status written = replace_folder(folder, [&](const fs::path& path) -> Status {
    const std::string config = model_config_json(policy.config(), dtype);
    CARNOT_RETURN_IF_ERROR(write_file_atomically(path / "config.json", config));
    return weights_file("", policy).write(path / "model.safetensors");
  });
  if (!written) return written;
  CARNOT_ASSIGN_OR_RETURN(auto base, base_model_of(folder));
  bundle.base = std::move(base);
  return Done{};
}

void add_policy_files(std::vector<CheckpointFile>& files, const ModelBundle& bundle, const fs::path& checkpoint,
                      const std::string& dtype) {
  const Model& policy = *bundle.policy;
  files.push_back(text_file("config.json", model_config_json(policy.config(), dtype)));
  if (!policy.has_adapters()) return files.push_back(weights_file("model.safetensors", policy));
  const fs::path adapter = kAdapterFolder;
  files.push_back(text_file(adapter / kAdapterConfigFile, peft_config(policy, bundle.base->folder.string())));
  files.push_back(tensor_file(adapter / kAdapterWeightsFile, peft_tensors(policy)));
  files.push_back(text_file(kBaseModelFile, base_model_json(*bundle.base, checkpoint)));
}

Status fill_optimizer(Optimizer& optimizer, const fs::path& file, const std::optional<UpdateCounts>& counts) {
  std::error_code ignored;
  if (!fs::exists(file, ignored))
    return Error{
        file.string() +
        ": is not there, and training cannot continue without it: an earlier checkpoint with "
        "train.save_optimizer=last has none, nor has the SFT of a training run once it is over, nor a finished run "
        "of a comparison. model.path=" +
        file.parent_path().string() + " begins a run with its weights"};
  if (!counts) return Error{file.string() + ": trainer_state.json does not say how many updates it has seen"};
  return load_optimizer(optimizer, file, *counts);
}

Status fill_parts(const fs::path& folder, const CheckpointParts& parts, const TrainerState& state) {
  CARNOT_RETURN_IF_ERROR(fill_policy(*parts.bundle, folder));
  if (parts.bundle->reference)
    CARNOT_RETURN_IF_ERROR(fill(parts.bundle->reference->trained(), folder / "reference.safetensors"));
  if (parts.bundle->critic)
    CARNOT_RETURN_IF_ERROR(fill(parts.bundle->critic->parameters(), folder / "critic.safetensors"));
  if (parts.optimizer)
    CARNOT_RETURN_IF_ERROR(fill_optimizer(*parts.optimizer, folder / kOptimizerFiles[0], state.optimizer));
  if (!parts.critic_optimizer) return Done{};
  return fill_optimizer(*parts.critic_optimizer, folder / kOptimizerFiles[1], state.critic_optimizer);
}

}  // namespace

OptimizerStates optimizer_states(const CheckpointParts& parts) {
  OptimizerStates states;
  if (parts.optimizer) states.policy = parts.optimizer->state();
  if (parts.critic_optimizer) states.critic = parts.critic_optimizer->state();
  return states;
}

Status save_checkpoint(const fs::path& checkpoints, std::int64_t step, const CheckpointParts& parts,
                       const OptimizerStates& optimizers, const RunOptions& run, const TrainOptions& train) {
  ModelBundle& bundle = *parts.bundle;
  if (bundle.policy->has_adapters() && !bundle.base)
    CARNOT_RETURN_IF_ERROR(keep_base(bundle, checkpoints.parent_path() / kBaseFolder, run.dtype));
  std::vector<CheckpointFile> files{
      text_file("tokenizer.json", bundle.tokenizer->json()),
      text_file("trainer_state.json", state_json(step, parts, run)),
  };
  for (const auto& [name, text] : bundle.model_files) files.push_back(text_file(name, text));
  add_policy_files(files, bundle, checkpoint_path(checkpoints, step), run.dtype);
  if (bundle.reference) files.push_back(tensor_file("reference.safetensors", bundle.reference->trained()));
  if (bundle.critic) files.push_back(tensor_file("critic.safetensors", bundle.critic->parameters()));
  if (parts.optimizer) files.push_back(tensor_file(kOptimizerFiles[0], as_named(optimizers.policy)));
  if (parts.critic_optimizer) files.push_back(tensor_file(kOptimizerFiles[1], as_named(optimizers.critic)));
  CARNOT_RETURN_IF_ERROR(write_checkpoint(checkpoints, step, files));
  CARNOT_RETURN_IF_ERROR(prune_checkpoints(checkpoints, train.max_checkpoints));
  return train.save_optimizer == "last" ? thin_checkpoints(checkpoints, kOptimizerFiles, 1) : Done{};
}

Status drop_optimizers(const fs::path& checkpoints) { return thin_checkpoints(checkpoints, kOptimizerFiles, 0); }

Status load_optimizer(Optimizer& optimizer, const fs::path& file, const UpdateCounts& counts) {
  CARNOT_ASSIGN_OR_RETURN(const auto stored, read_safetensors(file));
  Optimizer::Tensors tensors;
  for (const NamedTensor& named : stored.tensors) tensors.emplace_back(named.name, named.tensor);
  return optimizer.load_state(tensors, counts.updates, counts.skipped);
}

Result<TrainerState> load_checkpoint(const fs::path& checkpoint, const CheckpointParts& parts, const RunOptions& run) {
  const fs::path path = checkpoint / "trainer_state.json";
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  auto state = parse_trainer_state(text, path.string());
  if (!state) return state;
  CARNOT_RETURN_IF_ERROR(fill_parts(checkpoint, parts, *state));
  const std::string kernels = own_kernels(run);
  if (!state->kernels.empty() && state->kernels != kernels)
    log_warning(path.string() + ": was written with the kernels " + state->kernels + ", and this process has " +
                kernels + "; the run continues, but its bits are not those of a run that was never stopped");
  return state;
}

}  // namespace carnot
