#include "carnot/core/run/export_gguf.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/gguf/tokenizer_settings.h"
#include "carnot/core/hf/gguf_model.h"
#include "carnot/core/hf/gguf_rotary.h"
#include "carnot/core/hf/gguf_weights.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/model_files.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {
namespace {

/// What general.file_type says.
struct FileType {
  std::string_view word{};
  std::string_view type{};
  std::uint32_t number = 0;
};
constexpr FileType kFileTypes[] = {{"f32", "F32", 0}, {"f16", "F16", 1}, {"q8_0", "Q8_0", 7}, {"bf16", "BF16", 32}};

Result<FolderTokenizer> read_tokenizer(const std::filesystem::path& folder, const ModelConfig& config) {
  CARNOT_ASSIGN_OR_RETURN(const auto tokenizer, Tokenizer::load(folder));
  CARNOT_ASSIGN_OR_RETURN(const auto files, read_model_files(folder, folder));
  CARNOT_ASSIGN_OR_RETURN(const auto generation, generation_config(files, folder.string()));
  const auto tokenizer_config = files.find("tokenizer_config.json");
  FolderTokenizer read{.json = tokenizer.json(),
                       .config_json = tokenizer_config == files.end() ? "" : tokenizer_config->second,
                       .chat_template = chat_template(files),
                       .num_rows = config.vocab_size,
                       .bos_token = config.bos_token,
                       .pad_token = config.pad_token,
                       .eos_tokens = config.eos_tokens};
  read.eos_tokens.insert(read.eos_tokens.end(), generation.eos_tokens.begin(), generation.eos_tokens.end());
  return read;
}

const GgufBlockType* type_of(const GgufWeightName& weight, const GgufBlockType& of_matrices) {
  if (weight.shape.size() == 1 || weight.is_f32) return &gguf_block_type("F32");
  return weight.shape.back() % of_matrices.values == 0 ? &of_matrices : &gguf_block_type("F16");
}

/// `parts`: the folder's tensors. Both must outlive the result.
GgufPendingTensor pending(const GgufWeightName& weight, std::span<const at::Tensor> parts, const GgufBlockType& type) {
  const auto read_row = [&weight, parts](std::int64_t row, std::span<float> values) {
    const at::Tensor& part = parts[static_cast<std::size_t>(row / weight.rows())];
    const at::Tensor rows = part.dim() == 1 ? part.unsqueeze(0) : part.flatten(1);
    const at::Tensor numbers = rows.select(0, weight.folder_row(row % weight.rows())).to(at::kFloat).contiguous();
    const float* from = numbers.const_data_ptr<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = weight.stored_number(from[weight.tiled_columns.folder_index(static_cast<std::int64_t>(i))]);
  };
  return {.name = weight.stored, .shape = weight.stored_shape(), .type = type_of(weight, type), .read_row = read_row};
}

}  // namespace

Result<GgufDescription> describe_gguf(const std::filesystem::path& folder, const std::string& type) {
  const auto* file_type = std::find_if(std::begin(kFileTypes), std::end(kFileTypes),
                                       [&](const FileType& known) { return known.word == type; });
  CARNOT_CHECK(file_type != std::end(kFileTypes), type);
  CARNOT_ASSIGN_OR_RETURN(auto config, load_model_config(folder));
  CARNOT_ASSIGN_OR_RETURN(const auto tokenizer, read_tokenizer(folder, config));
  GgufDescription description{.config = std::move(config), .type = &gguf_block_type(file_type->type)};
  std::vector<std::string> problems;
  add_model(description.config, folder.string(), description.settings, problems);
  add_tokenizer(tokenizer, folder.string(), description.settings, problems);
  if (!problems.empty()) return join_errors(problems);
  description.settings["general.type"] = std::string("model");
  description.settings["general.file_type"] = file_type->number;
  description.settings["general.quantization_version"] = std::uint32_t{2};
  return description;
}

Status write_gguf_model(const std::filesystem::path& file, const GgufDescription& description,
                        const std::vector<NamedTensor>& weights, const std::string& name) {
  const at::NoGradGuard no_grad;
  const ModelConfig& config = description.config;
  const std::vector<GgufWeightName> names = gguf_weight_names(config);
  std::vector<TensorShape> shapes;
  for (const GgufWeightName& weight : names)
    for (int part = 0; part < weight.parts(); ++part) shapes.push_back({weight.part(part), weight.shape});
  CARNOT_ASSIGN_OR_RETURN(const auto found, find_tensors(shapes, without_copies(weights, config.tied_head), name));
  std::vector<GgufPendingTensor> tensors;
  std::span<const at::Tensor> rest = found;
  for (const GgufWeightName& weight : names) {
    const auto parts = static_cast<std::size_t>(weight.parts());
    tensors.push_back(pending(weight, rest.first(parts), *description.type));
    rest = rest.subspan(parts);
  }
  const std::vector<GgufRotaryTensor> factors = gguf_rotary_tensors(config);
  for (const auto& [factor_name, factor_values] : factors)
    tensors.push_back({.name = std::string(factor_name),
                       .shape = {static_cast<std::int64_t>(factor_values.size())},
                       .type = &gguf_block_type("F32"),
                       .read_row = [&factor_values](std::int64_t, std::span<float> values) {
                         std::copy(factor_values.begin(), factor_values.end(), values.begin());
                       }});
  return write_gguf(file, description.settings, tensors);
}

}  // namespace carnot
