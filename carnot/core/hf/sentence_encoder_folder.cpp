#include "carnot/core/hf/sentence_encoder_folder.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/hf/json_object_reader.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr int kMostLayers = 1000;
constexpr double kMostWeights = 4e9;  // of any BERT that this reads; more is a mistake in config.json

double num_weights(const SentenceEncoderConfig& config) {
  const double H = config.hidden_size, F = config.intermediate_size;
  const double rows = static_cast<double>(config.vocab_size) + config.max_positions + config.num_types;
  return rows * H + config.num_layers * (4 * H * H + 2 * H * F);
}

Result<OrderedJson> read_encoder_json(const fs::path& file) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(file));
  return parse_json_object<OrderedJson>(text, file.string());
}

Result<SentenceEncoderConfig> read_encoder_config(const fs::path& folder) {
  const fs::path file = folder / "config.json";
  CARNOT_ASSIGN_OR_RETURN(const auto json, read_encoder_json(file));
  SentenceEncoderConfig config;
  JsonObjectReader reader(json, file.string());
  reader.integer("vocab_size", config.vocab_size, true);
  reader.integer("hidden_size", config.hidden_size, true);
  reader.integer("num_hidden_layers", config.num_layers, true);
  reader.integer("num_attention_heads", config.num_heads, true);
  reader.integer("intermediate_size", config.intermediate_size, true);
  reader.integer("max_position_embeddings", config.max_positions, true);
  reader.integer("type_vocab_size", config.num_types, false);
  reader.number("layer_norm_eps", config.norm_epsilon);
  if (const OrderedJson* kind = reader.find("model_type"); !kind || *kind != "bert")
    reader.problem("model_type", "\"bert\", the only encoder that is computed");
  if (const OrderedJson* act = reader.find("hidden_act"); act && *act != "gelu")
    reader.problem("hidden_act", "\"gelu\"");
  if (!(config.norm_epsilon > 0 && config.norm_epsilon < 1)) reader.problem("layer_norm_eps", "a number from 0 to 1");
  if (const OrderedJson* kind = reader.find("position_embedding_type"); kind && *kind != "absolute")
    reader.problem("position_embedding_type", "\"absolute\"");
  for (const int size : {config.vocab_size, config.hidden_size, config.num_layers, config.num_heads,
                         config.intermediate_size, config.max_positions, config.num_types})
    if (size < 1 || size > kMaxModelSize)
      return Error{file.string() + ": expected sizes from 1 to " + std::to_string(kMaxModelSize) + ", found " +
                   std::to_string(size)};
  if (config.num_layers > kMostLayers || num_weights(config) > kMostWeights)
    return Error{file.string() + ": expected at most " + std::to_string(kMostLayers) + " layers and " +
                 std::to_string(static_cast<std::int64_t>(kMostWeights)) + " weights"};
  if (config.hidden_size % config.num_heads != 0) reader.problem("num_attention_heads", "a divisor of hidden_size");
  if (!reader.problems().empty()) return join_errors(reader.problems());
  return config;
}

/// The object of a file that a folder need not have; an empty one where it is missing.
Result<OrderedJson> read_optional_json(const fs::path& file) {
  if (!fs::exists(file)) return OrderedJson::object();
  return read_encoder_json(file);
}

/// The mean of all tokens, where the folder says how they are pooled.
Status check_pooling(const fs::path& folder) {
  const fs::path file = folder / "1_Pooling" / "config.json";
  CARNOT_ASSIGN_OR_RETURN(const auto json, read_optional_json(file));
  bool mean = true;
  std::vector<std::string> problems;
  for (const auto& [key, value] : json.items()) {
    if (!key.starts_with("pooling_mode_") || !value.is_boolean()) continue;
    if (key == "pooling_mode_mean_tokens")
      mean = value.get<bool>();
    else if (value.get<bool>())
      problems.push_back(file.string() + ": " + key + " is true, expected pooling_mode_mean_tokens alone");
  }
  if (!mean) problems.push_back(file.string() + ": pooling_mode_mean_tokens is false, expected true");
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

/// What sentence-transformers runs one after the other; the rest of the folder says how.
Status check_modules(const fs::path& folder) {
  const fs::path file = folder / "modules.json";
  if (!fs::exists(file)) return Done{};
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(file));
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json<OrderedJson>(text, file.string()));
  std::vector<std::string> problems;
  for (const OrderedJson& one : json) {
    const auto type = one.is_object() ? one.find("type") : one.end();
    const std::string name = type != one.end() && type->is_string() ? type->get<std::string>() : "";
    if (!name.ends_with(".Transformer") && !name.ends_with(".Pooling") && !name.ends_with(".Normalize"))
      problems.push_back(file.string() + ": expected the modules Transformer, Pooling and Normalize, found \"" + name +
                         "\"");
  }
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

struct TextSettings {
  WordPieceOptions words{};
  int longest = 0;
};

/// How texts become ids: tokenizer_config.json and sentence_bert_config.json.
Result<TextSettings> read_text_settings(const fs::path& folder, const SentenceEncoderConfig& config) {
  const fs::path tokenizer_file = folder / "tokenizer_config.json", length_file = folder / "sentence_bert_config.json";
  CARNOT_ASSIGN_OR_RETURN(const auto tokenizer, read_optional_json(tokenizer_file));
  CARNOT_ASSIGN_OR_RETURN(const auto length, read_optional_json(length_file));
  TextSettings settings{.longest = config.max_positions};
  JsonObjectReader words(tokenizer, tokenizer_file.string()), more(length, length_file.string());
  words.boolean("do_lower_case", settings.words.lower_case);
  bool strips = settings.words.lower_case, splits = true;
  words.boolean("strip_accents", strips);
  words.boolean("tokenize_chinese_chars", splits);
  if (strips != settings.words.lower_case) words.problem("strip_accents", "the value of do_lower_case, or null");
  if (!splits) words.problem("tokenize_chinese_chars", "true");
  bool lower = false;
  more.boolean("do_lower_case", lower);
  if (lower && !settings.words.lower_case) more.problem("do_lower_case", "false, as in tokenizer_config.json");
  int longest = settings.longest;
  more.integer("max_seq_length", longest, false);
  if (longest < 2) more.problem("max_seq_length", "at least 2");
  settings.longest = std::min(longest, config.max_positions);
  std::vector<std::string> problems = words.problems();
  problems.insert(problems.end(), more.problems().begin(), more.problems().end());
  if (!problems.empty()) return join_errors(problems);
  return settings;
}

/// Without "bert." before the names, and without what the mean does not need.
std::vector<NamedTensor> encoder_tensors(std::vector<NamedTensor> tensors) {
  for (NamedTensor& one : tensors)
    if (one.name.starts_with("bert.")) one.name.erase(0, 5);
  std::erase_if(tensors, [](const NamedTensor& one) {
    return one.name.starts_with("pooler.") || one.name == "embeddings.position_ids" || one.name.starts_with("cls.");
  });
  return tensors;
}

/// Of everything that a vector depends on.
Result<std::string> mark_of_files(const fs::path& folder, const SentenceEncoderConfig& config,
                                  const TextSettings& text) {
  CARNOT_ASSIGN_OR_RETURN(auto files, model_tensor_files(folder));
  files.push_back("vocab.txt");
  std::string sums = std::to_string(config.num_heads) + " " + std::to_string(config.norm_epsilon * 1e15) + " " +
                     std::to_string(text.longest) + " " + std::to_string(text.words.lower_case);
  for (const std::string& name : files) {
    CARNOT_ASSIGN_OR_RETURN(const auto sum, sha256_of_file(folder / name));
    sums += " " + sum;
  }
  return sha256_hex(sums);
}

}  // namespace

Result<SentenceEncoderFolder> load_sentence_encoder(const fs::path& folder) {
  const auto config = read_encoder_config(folder);
  if (!config) return config.error();
  CARNOT_RETURN_IF_ERROR(check_modules(folder));
  CARNOT_RETURN_IF_ERROR(check_pooling(folder));
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_text_settings(folder, *config));
  CARNOT_ASSIGN_OR_RETURN(auto tokenizer, WordPieceTokenizer::load(folder / "vocab.txt", text.words));
  if (tokenizer.size() > static_cast<std::size_t>(config->vocab_size))
    return Error{(folder / "vocab.txt").string() + ": has " + std::to_string(tokenizer.size()) +
                 " pieces, more than config.json's vocab_size of " + std::to_string(config->vocab_size)};
  CARNOT_ASSIGN_OR_RETURN(auto tensors, read_model_tensors(folder));
  SentenceEncoder encoder(*config, at::kFloat);
  if (const Status copied =
          copy_tensors(encoder.parameters(), encoder_tensors(std::move(tensors.tensors)), folder.string());
      !copied)
    return copied.error();
  CARNOT_ASSIGN_OR_RETURN(auto mark, mark_of_files(folder, *config, text));
  return SentenceEncoderFolder{.encoder = std::move(encoder),
                               .tokenizer = std::move(tokenizer),
                               .mark = std::move(mark),
                               .max_tokens = text.longest};
}

std::vector<std::vector<float>> SentenceEncoderFolder::encode(std::span<const std::string> texts,
                                                              std::size_t batch) const {
  std::vector<std::vector<float>> vectors;
  for (std::size_t begin = 0; begin < texts.size(); begin += batch) {
    std::vector<std::vector<std::int64_t>> ids;
    for (const std::string& text : texts.subspan(begin, std::min(batch, texts.size() - begin))) {
      const auto tokens = tokenizer.encode(text, static_cast<std::size_t>(max_tokens));
      ids.emplace_back(tokens.begin(), tokens.end());
    }
    const at::Tensor rows_BH = encoder.encode(ids).contiguous();
    const float* values = rows_BH.data_ptr<float>();
    for (std::int64_t i = 0; i < rows_BH.size(0); ++i)
      vectors.emplace_back(values + i * rows_BH.size(1), values + (i + 1) * rows_BH.size(1));
  }
  return vectors;
}

}  // namespace carnot
