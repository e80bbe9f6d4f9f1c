#include "carnot/core/run/export.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/base_model.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/model_files.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/text_part.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/export_gguf.h"
#include "carnot/core/run/export_output.h"
#include "carnot/core/run/find_run.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

std::string dtype_name(at::ScalarType dtype) {
  if (dtype == at::kDouble) return "float64";
  if (dtype == at::kBFloat16) return "bfloat16";
  return dtype == at::kHalf ? "float16" : "float32";
}

at::ScalarType dtype_of(const std::string& name) {
  if (name == "bfloat16") return at::kBFloat16;
  return name == "float16" ? at::kHalf : at::kFloat;
}

/// Fails if a number does not fit.
Status convert(std::vector<NamedTensor>& tensors, at::ScalarType dtype) {
  std::vector<std::string> problems;
  for (NamedTensor& named : tensors) {
    const at::Tensor converted = named.tensor.to(dtype);
    if (at::isfinite(named.tensor).all().item<bool>() && !at::isfinite(converted).all().item<bool>())
      problems.push_back("--dtype " + dtype_name(dtype) + ": weight '" + named.name +
                         "' has numbers that are too large for it");
    named.tensor = converted;
  }
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

/// A folder's weights, adapters merged into them; in the type that was asked for, or else the one they are stored in.
Result<std::vector<NamedTensor>> exported_weights(const fs::path& from, const ExportOptions& options) {
  if (!holds_adapters(from)) {
    CARNOT_ASSIGN_OR_RETURN(auto file, read_model_tensors(from));
    if (!options.dtype.empty()) CARNOT_RETURN_IF_ERROR(convert(file.tensors, dtype_of(options.dtype)));
    return std::move(file.tensors);
  }
  CARNOT_ASSIGN_OR_RETURN(const auto stored, stored_dtype(from));
  CARNOT_ASSIGN_OR_RETURN(const auto policy,
                          load_merged(from, at::TensorOptions(stored == at::kDouble ? at::kDouble : at::kFloat)));
  std::vector<NamedTensor> tensors = file_tensors(stored_weights(policy));
  const at::ScalarType dtype = options.dtype.empty() ? stored : dtype_of(options.dtype);
  CARNOT_RETURN_IF_ERROR(convert(tensors, dtype));
  return tensors;
}

Status write_json(const fs::path& path, const OrderedJson& json) {
  return write_file_atomically(path, json.dump(2) + "\n");
}

Result<OrderedJson> read_object(const fs::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  return parse_json_object<OrderedJson>(text, path.string());
}

/// transformers 4 reads torch_dtype, transformers 5 dtype if there is one.
Status write_config(const fs::path& from, const fs::path& to, at::ScalarType dtype) {
  CARNOT_ASSIGN_OR_RETURN(auto config, read_object(from));
  if (config.contains("dtype")) config["dtype"] = dtype_name(dtype);
  if (config.contains("torch_dtype") || !config.contains("dtype")) config["torch_dtype"] = dtype_name(dtype);
  return write_json(to, config);
}

/// Tokenizer, chat template and the like.
Status write_companions(const fs::path& from, const fs::path& to) {
  CARNOT_ASSIGN_OR_RETURN(auto files, read_model_files(from, from));
  const auto tokenizer = Tokenizer::load(from);
  if (!tokenizer) return tokenizer.error();
  files["tokenizer.json"] = tokenizer->json();
  for (const auto& [name, content] : files) CARNOT_RETURN_IF_ERROR(write_file_atomically(to / name, content));
  return Done{};
}

/// One Hugging Face folder; what accompanies the weights comes from `companions`.
Status write_model(const fs::path& from, const fs::path& companions, const fs::path& to, const ExportOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(const auto tensors, exported_weights(from, options));
  if (tensors.empty()) return Error{from.string() + ": its weights are empty"};
  CARNOT_RETURN_IF_ERROR(make_folder(to));
  const Status config = write_config(from / "config.json", to / "config.json", tensors.front().tensor.scalar_type());
  if (!config) return config;
  CARNOT_RETURN_IF_ERROR(write_companions(companions, to));
  return write_model_tensors(to, tensors, static_cast<std::int64_t>(options.shard_megabytes * 1e6));
}

/// A checkpoint's adapters. They name as their base the model.path that they were trained on; where the run drew the
/// weights itself, `base`, which is exported with them.
Status write_adapter(const fs::path& checkpoint, const fs::path& to, const fs::path& base,
                     const ExportOptions& options) {
  const fs::path from = checkpoint / kAdapterFolder;
  CARNOT_ASSIGN_OR_RETURN(auto config, read_object(from / kAdapterConfigFile));
  CARNOT_ASSIGN_OR_RETURN(auto file, read_weights(from / kAdapterWeightsFile));
  const auto trained_on = read_base_model(checkpoint);
  if (!trained_on) return trained_on.error();
  if (!options.dtype.empty()) CARNOT_RETURN_IF_ERROR(convert(file.tensors, dtype_of(options.dtype)));
  CARNOT_RETURN_IF_ERROR(make_folder(to));
  OrderedJson& named = config["base_model_name_or_path"];
  if (named.is_null() || (*trained_on && is_of_same_run(**trained_on, checkpoint))) named = base.string();
  CARNOT_RETURN_IF_ERROR(write_json(to / kAdapterConfigFile, config));
  return write_safetensors(to / kAdapterWeightsFile, file.tensors, {{"format", "pt"}});
}

/// PEFT would look for adapters of what the model's files fuse.
Status check_separate(const fs::path& source) {
  CARNOT_ASSIGN_OR_RETURN(const auto config, load_model_config(source));
  if (!find_model_family(config.family)->fused_projections) return Done{};
  CARNOT_ASSIGN_OR_RETURN(const auto lora, read_adapter_options(source / kAdapterFolder));
  std::vector<std::string> fused;
  for (const std::string& target : lora.targets)
    if (const auto whole = fused_name(target); !whole.empty()) fused.push_back(target + " of " + std::string(whole));
  if (fused.empty()) return Done{};
  return Error{source.string() + ": has adapters of parts of '" + config.family + "' projections (" + join(fused) +
               "), which PEFT adapts as a whole; expected --merge-lora, or adapters of o_proj and down_proj alone"};
}

Result<std::string> export_gguf(const fs::path& source, const ExportPlace& place, const ExportOptions& options) {
  std::vector<std::string> problems;
  if (holds_adapters(source) && !options.merge_lora)
    problems.push_back("--gguf: " + source.string() + " holds adapters; expected --merge-lora");
  if (!options.dtype.empty())
    problems.push_back("--dtype: --gguf has the type of the weights; expected one of the two");
  const auto output = export_output_file(place);
  if (!output) problems.push_back(output.error().message);
  const auto description = describe_gguf(source, options.gguf);
  if (!description) problems.push_back(description.error().message);
  if (!problems.empty()) return join_errors(problems);
  CARNOT_ASSIGN_OR_RETURN(const auto weights, exported_weights(source, options));
  CARNOT_RETURN_IF_ERROR(make_folder(output->parent_path()));
  CARNOT_RETURN_IF_ERROR(write_gguf_model(*output, *description, text_part(weights).tensors, source.string()));
  return source.string() + " is exported to " + output->string() + "\n";
}

}  // namespace

Result<std::string> export_model(const ExportOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(const auto source, find_model(options.path));
  const bool adapters = holds_adapters(source);
  if (options.merge_lora && !adapters) return Error{"--merge-lora: " + source.string() + " holds no adapters"};
  CARNOT_ASSIGN_OR_RETURN(const auto base_model, read_base_model(source));
  const ExportPlace place{.source = source,
                          .base = base_model ? base_model->folder : fs::path(),
                          .output = options.output,
                          .overwrite = options.overwrite};
  if (!options.gguf.empty()) return export_gguf(source, place, options);
  if (adapters && !options.merge_lora) CARNOT_RETURN_IF_ERROR(check_separate(source));
  CARNOT_ASSIGN_OR_RETURN(const auto output, export_output(place));
  const bool apart = adapters && !options.merge_lora;
  const auto fill = [&](const fs::path& folder) -> Status {
    if (!apart) return write_model(source, source, folder, options);
    CARNOT_ASSIGN_OR_RETURN(const auto base, find_base(source));
    CARNOT_RETURN_IF_ERROR(write_model(base, source, folder / kBaseFolder, options));
    return write_adapter(source, folder / kAdapterFolder, output / kBaseFolder, options);
  };
  const Status written = replace_folder(output, [&](const fs::path& folder) -> Status {
    const Status filled = fill(folder);
    return filled ? mark_as_export(folder) : filled;
  });
  if (!written) return written.error();
  if (!apart) return source.string() + " is exported to " + output.string() + "\n";
  return source.string() + " is exported: weights to " + (output / kBaseFolder).string() + ", adapters (PEFT) to " +
         (output / kAdapterFolder).string() + "; --merge-lora makes one model of them\n";
}

}  // namespace carnot
