#include "carnot/core/run/import.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/gguf/tokenizer.h"
#include "carnot/core/hf/generation_config.h"
#include "carnot/core/hf/gguf_model.h"
#include "carnot/core/hf/gguf_rotary.h"
#include "carnot/core/hf/gguf_weights.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/export_output.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

struct GgufModel {
  std::shared_ptr<MappedFile> mapping{};
  GgufFile file{};
  ModelConfig config{};
  GgufTokenizer tokenizer{};
  std::vector<GgufWeight> weights{};
};

Result<GgufModel> read_model(const fs::path& path) {
  const std::string name = path.string();
  CARNOT_ASSIGN_OR_RETURN(auto mapping, MappedFile::open(path));
  GgufModel model{.mapping = std::move(mapping)};
  CARNOT_ASSIGN_OR_RETURN(model.file, parse_gguf(model.mapping->bytes(), name));
  CARNOT_ASSIGN_OR_RETURN(model.config, gguf_model_config(model.file, name));
  CARNOT_ASSIGN_OR_RETURN(model.weights, gguf_weights(model.file, model.config, name));
  CARNOT_ASSIGN_OR_RETURN(model.tokenizer, read_gguf_tokenizer(model.file, model.config.max_positions, name));
  if (model.tokenizer.num_tokens > model.config.vocab_size)
    return Error{name + ": its tokenizer has " + std::to_string(model.tokenizer.num_tokens) +
                 " tokens, its embedding only " + std::to_string(model.config.vocab_size) + " rows"};
  model.config.bos_token = model.tokenizer.bos_token;
  model.config.pad_token = model.tokenizer.pad_token;
  model.config.eos_tokens = model.tokenizer.eos_tokens;
  return model;
}

/// One part of a weight; false if a number is not finite.
template <class Number>
bool fill(const GgufWeight& weight, int part, Number* values) {
  const GgufTensor& stored = *weight.tensor;
  const std::int64_t rows = weight.name.rows(), columns = stored.shape.back();
  const std::size_t row_bytes = stored.bytes.size() / static_cast<std::size_t>(rows * weight.name.parts());
  std::vector<float> row_values(static_cast<std::size_t>(columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = static_cast<std::size_t>(part * rows + row) * row_bytes;
    dequantize(*stored.type, stored.bytes.substr(begin, row_bytes), row_values);
    Number* to = values + weight.name.folder_row(row) * columns;
    for (std::int64_t column = 0; column < columns; ++column) {
      const auto number = static_cast<Number>(weight.name.folder_number(row_values[static_cast<std::size_t>(column)]));
      to[weight.name.tiled_columns.folder_index(column)] = number;
      if (!std::isfinite(static_cast<float>(number))) return false;
    }
  }
  return true;
}

Result<at::Tensor> make_tensor(const GgufWeight& weight, int part, at::ScalarType type, const std::string& name) {
  const at::Tensor tensor = at::empty(weight.name.shape, type);
  const bool finite = type == at::kFloat ? fill(weight, part, tensor.mutable_data_ptr<float>())
                                         : fill(weight, part, tensor.mutable_data_ptr<at::BFloat16>());
  if (finite) return tensor;
  return Error{name + ": tensor '" + std::string(weight.tensor->name) + "' holds numbers that are not finite" +
               (type == at::kFloat ? "" : " in bfloat16") + "; expected finite weights"};
}

Status write_model(const GgufModel& model, const ImportOptions& options, const fs::path& folder) {
  const std::pair<const char*, std::string> files[] = {
      {"config.json", model_config_json(model.config, options.dtype)},
      {"generation_config.json", generation_config_json(model.config.eos_tokens)},
      {"tokenizer.json", model.tokenizer.tokenizer_json},
      {"tokenizer_config.json", model.tokenizer.tokenizer_config_json}};
  for (const auto& [name, content] : files) CARNOT_RETURN_IF_ERROR(write_file_atomically(folder / name, content));
  const at::ScalarType type = options.dtype == "float32" ? at::kFloat : at::kBFloat16;
  std::vector<PendingTensor> tensors;
  for (const GgufWeight& weight : model.weights) {
    std::int64_t bytes = type == at::kFloat ? 4 : 2;
    for (const std::int64_t size : weight.name.shape) bytes *= size;
    for (int part = 0; part < weight.name.parts(); ++part)
      tensors.push_back({.name = weight.name.part(part), .bytes = bytes, .make = [&weight, &options, part, type] {
                           return make_tensor(weight, part, type, options.file.string());
                         }});
  }
  const Status written = write_model_tensors(folder, tensors, static_cast<std::int64_t>(options.shard_megabytes * 1e6));
  return written ? mark_as_export(folder) : written;
}

}  // namespace

Result<std::string> import_model(const ImportOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(const auto model, read_model(options.file));
  CARNOT_ASSIGN_OR_RETURN(const auto output, export_output({.output = options.output, .overwrite = options.overwrite}));
  for (const std::string& note : model.tokenizer.notes) log_warning(options.file.string() + ": " + note);
  const std::ptrdiff_t left_out = std::ssize(model.file.tensors) - std::ssize(model.weights) -
                                  std::count_if(model.file.tensors.begin(), model.file.tensors.end(),
                                                [](const auto& it) { return is_gguf_rotary_tensor(it.name); });
  if (left_out > 0)
    log_warning(options.file.string() + ": leaves out " + std::to_string(left_out) +
                " tensors of layers that predict tokens after the next one");
  const Status written =
      replace_folder(output, [&](const fs::path& folder) { return write_model(model, options, folder); });
  if (!written) return written.error();
  return options.file.string() + " is imported to " + output.string() + ": " + model.config.family + ", " +
         std::to_string(model.config.num_layers) + " layers, " + std::to_string(model.config.num_parameters()) +
         " weights in " + options.dtype + "\n";
}

}  // namespace carnot
