#include "carnot/train/checkpoint.h"

#include <ATen/Functions.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "carnot/base/file.h"
#include "carnot/nn/adapter_config.h"
#include "carnot/nn/adapter_folder.h"
#include "carnot/nn/safetensors.h"
#include "carnot/train/checkpoint_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<NamedTensor> optimizer_tensors(const AdamW& optimizer) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : optimizer.state()) tensors.push_back({name, tensor.to(at::kCPU)});
  return tensors;
}

CheckpointFile text_file(const std::string& name, std::string content) {
  return {name, [content = std::move(content)](const fs::path& path) { return write_file_atomically(path, content); }};
}

CheckpointFile tensor_file(const std::string& name, std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) named.tensor = named.tensor.detach().to(at::kCPU).contiguous();
  return {name, [tensors = std::move(tensors)](const fs::path& path) {
            return write_safetensors(path, tensors, {{"format", "pt"}});
          }};
}

Json counters(const AdamW& optimizer) {
  return {{"updates", optimizer.num_updates()}, {"skipped", optimizer.num_skipped()}};
}

std::string state_json(std::int64_t step, const CheckpointParts& parts, const RunOptions& run) {
  Json state{{"version", 1}, {"step", step}, {"seed", run.seed}};
  if (parts.optimizer) state["optimizer"] = counters(*parts.optimizer);
  if (parts.critic_optimizer) state["critic_optimizer"] = counters(*parts.critic_optimizer);
  state["coefficients"] = parts.coefficients;
  if (!parts.unwritten_metrics.empty()) state["unwritten_metrics"] = parts.unwritten_metrics;
  return state.dump(2) + "\n";
}

/// Numbers that are none are null in JSON.
std::map<std::string, double> metrics_in(const Json& json) {
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : json.items())
    metrics[name] = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  return metrics;
}

Status fill(const std::vector<NamedTensor>& weights, const fs::path& file) {
  const auto stored = read_safetensors(file);
  if (!stored) return stored.error();
  return copy_tensors(weights, stored->tensors, file.string());
}

Status fill_policy(const Model& policy, const fs::path& folder) {
  if (!policy.has_adapters()) return fill(policy.parameters(), folder / "model.safetensors");
  if (const Status status = fill(policy.parameters(), folder / kBaseFolder / "model.safetensors"); !status)
    return status;
  return fill(peft_tensors(policy), folder / kAdapterFolder / kAdapterWeightsFile);
}

/// The merged weights in the folder itself, so that every reader of model folders finds the policy there.
void add_policy_files(std::vector<CheckpointFile>& files, const Workbench& bench, const std::string& dtype) {
  const Model& policy = *bench.policy;
  const std::string config = model_config_json(policy.config(), dtype);
  files.push_back(text_file("config.json", config));
  if (!policy.has_adapters()) return files.push_back(tensor_file("model.safetensors", policy.parameters()));
  const fs::path base = kBaseFolder, adapter = kAdapterFolder;
  files.push_back(tensor_file("model.safetensors", policy.merged().parameters()));
  files.push_back(text_file(base / "config.json", config));
  files.push_back(tensor_file(base / "model.safetensors", policy.parameters()));
  files.push_back(text_file(adapter / kAdapterConfigFile, adapter_config_json(policy.lora(), bench.base_model)));
  files.push_back(tensor_file(adapter / kAdapterWeightsFile, peft_tensors(policy)));
}

Status fill_optimizer(AdamW& optimizer, const fs::path& file, const Json& counts) {
  const auto stored = read_safetensors(file);
  if (!stored) return stored.error();
  AdamW::Parameters tensors;
  for (const NamedTensor& named : stored->tensors) tensors.emplace_back(named.name, named.tensor);
  return optimizer.load_state(tensors, counts.at("updates").get<std::int64_t>(),
                              counts.at("skipped").get<std::int64_t>());
}

Status fill_parts(const fs::path& folder, const CheckpointParts& parts, const Json& state) {
  if (const Status status = fill_policy(*parts.bench->policy, folder); !status) return status;
  if (parts.bench->reference)
    if (const Status status = fill(parts.bench->reference->trained(), folder / "reference.safetensors"); !status)
      return status;
  if (parts.bench->critic)
    if (const Status status = fill(parts.bench->critic->parameters(), folder / "critic.safetensors"); !status)
      return status;
  if (parts.optimizer) {
    const Status status = fill_optimizer(*parts.optimizer, folder / "optimizer.safetensors", state.at("optimizer"));
    if (!status) return status;
  }
  if (!parts.critic_optimizer) return Done{};
  return fill_optimizer(*parts.critic_optimizer, folder / "critic_optimizer.safetensors", state.at("critic_optimizer"));
}

}  // namespace

Status save_checkpoint(const fs::path& checkpoints, std::int64_t step, const CheckpointParts& parts,
                       const RunOptions& run, std::int64_t max_checkpoints) {
  const Workbench& bench = *parts.bench;
  std::vector<CheckpointFile> files{
      text_file("tokenizer.json", bench.tokenizer->json()),
      text_file("trainer_state.json", state_json(step, parts, run)),
  };
  for (const auto& [name, text] : bench.model_files) files.push_back(text_file(name, text));
  add_policy_files(files, bench, run.dtype);
  if (bench.reference) files.push_back(tensor_file("reference.safetensors", bench.reference->trained()));
  if (bench.critic) files.push_back(tensor_file("critic.safetensors", bench.critic->parameters()));
  if (parts.optimizer) files.push_back(tensor_file("optimizer.safetensors", optimizer_tensors(*parts.optimizer)));
  if (parts.critic_optimizer)
    files.push_back(tensor_file("critic_optimizer.safetensors", optimizer_tensors(*parts.critic_optimizer)));
  if (const Status status = write_checkpoint(checkpoints, step, files); !status) return status;
  return prune_checkpoints(checkpoints, max_checkpoints);
}

Result<TrainerState> load_checkpoint(const fs::path& checkpoint, const CheckpointParts& parts) {
  const auto text = read_file(checkpoint / "trainer_state.json");
  if (!text) return text.error();
  const std::string where = (checkpoint / "trainer_state.json").string();
  try {
    const Json state = Json::parse(*text);
    if (const Status status = fill_parts(checkpoint, parts, state); !status) return status.error();
    return TrainerState{.step = state.at("step").get<std::int64_t>(),
                        .coefficients = state.at("coefficients").get<std::map<std::string, double>>(),
                        .unwritten_metrics = metrics_in(state.value("unwritten_metrics", Json::object()))};
  } catch (const Json::exception& problem) {
    return Error{where + ": not a trainer state: " + problem.what()};
  }
}

}  // namespace carnot
