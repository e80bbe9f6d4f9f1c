// `carnot export --gguf`: what a GGUF file holds, by reading it again.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/gguf/file.h"
#include "carnot/core/hf/gguf_weights.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/run/checkpoint.h"
#include "carnot/core/run/checkpoint_folder.h"
#include "carnot/core/run/export.h"
#include "carnot/core/run/import.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ExportGguf : public ::testing::Test {
 protected:
  ExportGguf() : root_(fs::temp_directory_path() / ("carnot_export_gguf_" + std::to_string(::getpid()))) {
    fs::create_directories(root_);
  }
  ~ExportGguf() override { fs::remove_all(root_); }

  fs::path import(const fs::path& file, const std::string& name) const {
    const auto done = import_model({.file = file, .output = root_ / name, .dtype = "float32"});
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    return root_ / name;
  }
  fs::path recorded_model(const std::string& name) const {
    return import(recorded_path("gguf/" + name + ".gguf"), name);
  }
  /// The file; empty, with a failure, where there is an error.
  std::string exported(const fs::path& folder, const std::string& type, const std::string& name = "x.gguf") const {
    const auto done = export_model({.path = folder, .output = root_ / name, .gguf = type, .overwrite = true});
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    return done ? read_file(root_ / name).value() : "";
  }
  std::string problem(ExportOptions options) const {
    const auto done = export_model(options);
    return done ? "written" : done.error().message;
  }
  static void replace(const fs::path& file, const char* key, const Json& value) {
    Json json = Json::parse(read_file(file).value());
    json[key] = value;
    ASSERT_TRUE(write_file_atomically(file, json.dump()).ok());
  }

  const fs::path root_;
};

void expect_same_files(const fs::path& a, const fs::path& b) {
  for (const char* name :
       {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"})
    EXPECT_EQ(*read_file(a / name), *read_file(b / name)) << name;
}

std::map<std::string, at::Tensor> weights_of(const fs::path& folder) {
  std::map<std::string, at::Tensor> weights;
  const auto file = read_model_tensors(folder).value();
  for (const NamedTensor& named : file.tensors) weights[named.name] = named.tensor;
  return weights;
}

constexpr const char* kFamilies[] = {"smollm3", "gemma3", "granite",    "qwen3moe", "olmoe", "olmo2",
                                     "olmo3",   "phi3",   "ministral3", "lfm2",     "qwen35"};

TEST_F(ExportGguf, ImportedAgainIsTheSameFolderInEveryByte) {
  std::vector<const char*> names{"smollm", "llama3", "qwen2", "qwen3"};
  names.insert(names.end(), std::begin(kFamilies), std::end(kFamilies));
  for (const char* name : names) {
    SCOPED_TRACE(name);
    const fs::path folder = recorded_model(name);
    const std::string bytes = exported(folder, "f32", std::string(name) + ".gguf");
    const fs::path again = import(root_ / (std::string(name) + ".gguf"), std::string(name) + "_again");
    expect_same_files(folder, again);
    EXPECT_EQ(exported(again, "f32", "twice.gguf"), bytes);
  }
}

/// The bytes of each value and tensor that is of the architecture.
std::map<std::string, std::string> contents_of(const GgufFile& file, const std::string& architecture) {
  std::map<std::string, std::string> contents;
  for (const auto& [key, value] : file.values)
    if (key.starts_with(architecture + ".")) contents[std::string(key)] = value.bytes;
  for (const GgufTensor& tensor : file.tensors)
    contents[std::string(tensor.name) + " " + std::string(tensor.type->name)] = tensor.bytes;
  return contents;
}

// Recorded by tools/golden/gguf_families.py. What an imported Q8_0 file holds is rounded to the same blocks.
TEST_F(ExportGguf, HasTheKeysAndTensorsThatThePythonPackageWrites) {
  for (const std::string name : kFamilies) {
    SCOPED_TRACE(name);
    const std::string bytes = exported(recorded_model(name), "q8_0"),
                      recorded = read_file(recorded_path("gguf/" + name + ".gguf")).value();
    const GgufFile file = parse_gguf(bytes, "x").value(), expected = parse_gguf(recorded, "x").value();
    const auto architecture = std::string(expected.values.at("general.architecture").bytes);
    EXPECT_EQ(file.tensors.size(), expected.tensors.size());
    const auto written = contents_of(file, architecture);
    for (const auto& [key, value] : contents_of(expected, architecture)) {
      if (key == "olmo2.attention.sliding_window_pattern" || key == "olmo2.rope.scaling.yarn_beta_fast")
        continue;  // the usual ones are not written
      ASSERT_TRUE(written.contains(key)) << key;
      EXPECT_EQ(written.at(key), value) << key;
    }
  }
}

TEST_F(ExportGguf, RoundsEachWeightOnceAndKeepsVectors) {
  const fs::path folder = recorded_model("qwen2");
  const auto stored = weights_of(folder);
  for (const auto& [type, dtype] : {std::pair("f16", at::kHalf), std::pair("bf16", at::kBFloat16)}) {
    exported(folder, type);
    const auto read = weights_of(import(root_ / "x.gguf", type));
    ASSERT_EQ(read.size(), stored.size());
    for (const auto& [name, tensor] : stored)
      EXPECT_TRUE(at::equal(read.at(name), tensor.dim() == 1 ? tensor : tensor.to(dtype).to(at::kFloat))) << name;
  }
}

TEST_F(ExportGguf, HasTheBlocksOfEachRowOfTheFolder) {
  const fs::path folder = recorded_model("llama3");
  const std::string bytes = exported(folder, "q8_0");
  const auto file = parse_gguf(bytes, "x").value();
  const auto stored = weights_of(folder);
  const auto weights = gguf_weights(file, load_model_config(folder).value(), "x").value();
  EXPECT_EQ(weights.size(), stored.size());
  bool any_moved = false;
  for (const GgufWeight& weight : weights) {
    const at::Tensor& tensor = stored.at(weight.name.name);
    EXPECT_EQ(weight.tensor->type->name, tensor.dim() == 1 ? "F32" : "Q8_0");
    std::string expected;
    const std::int64_t rows = tensor.dim() == 1 ? 1 : tensor.size(0), columns = tensor.size(-1);
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t from = weight.name.folder_row(row);
      any_moved = any_moved || from != row;
      const std::span values(tensor.const_data_ptr<float>() + from * columns, static_cast<std::size_t>(columns));
      EXPECT_TRUE(quantize(*weight.tensor->type, values, expected));
    }
    EXPECT_EQ(weight.tensor->bytes, expected) << weight.name.name;
  }
  EXPECT_TRUE(any_moved) << "queries and keys of Llama have another order";
}

TEST_F(ExportGguf, OfMistralIsThatOfLlama) {
  const fs::path folder = recorded_model("smollm");
  const std::string llama = exported(folder, "q8_0");
  replace(folder / "config.json", "model_type", "mistral");
  EXPECT_EQ(exported(folder, "q8_0"), llama);
}

/// A folder of random weights with another's tokenizer.
fs::path write_random(const fs::path& folder, const ModelConfig& config, const fs::path& tokenizer) {
  fs::create_directories(folder);
  std::vector<NamedTensor> tensors;
  for (const GgufWeightName& weight : gguf_weight_names(config))
    for (int part = 0; part < weight.parts(); ++part) {
      at::Tensor random = at::randn(weight.shape, at::kFloat);
      if (weight.added != 0) random = at::randint(-512, 513, weight.shape, at::kFloat) / 256;
      if (weight.negative_exponential) random = random.abs().add(0.1).to(at::kDouble).log().to(at::kFloat);
      tensors.push_back({weight.part(part), random});
    }
  EXPECT_TRUE(write_model_tensors(folder, tensors, 1 << 30).ok());
  EXPECT_TRUE(write_file_atomically(folder / "config.json", model_config_json(config, "float32")).ok());
  for (const char* name : {"generation_config.json", "tokenizer.json", "tokenizer_config.json"})
    fs::copy(tokenizer / name, folder / name);
  return folder;
}

TEST_F(ExportGguf, KeepsEachKindOfRotaryScalingAndHeadsOfAnySize) {
  const fs::path tokenizer = recorded_model("smollm");
  ModelConfig config = load_model_config(tokenizer).value();
  config.head_dim = 24;
  config.num_kv_heads = 1;
  config.tied_head = false;
  const RotaryScaling scalings[] = {
      {},
      {.kind = "linear", .factor = 2},
      {.kind = "yarn", .factor = 4, .original_max_positions = 128, .attention_factor = 0.1 * std::log(4.0) + 1},
      {.kind = "llama3", .factor = 32, .original_max_positions = 8192}};
  for (const RotaryScaling& scaling : scalings) {
    SCOPED_TRACE(scaling.kind);
    config.rope_scaling = scaling;
    config.rope_theta = 500000;
    const fs::path folder = write_random(root_ / scaling.kind, config, tokenizer);
    exported(folder, "f32", scaling.kind + ".gguf");
    expect_same_files(folder, import(root_ / (scaling.kind + ".gguf"), scaling.kind + "_again"));
  }
}

TEST_F(ExportGguf, KeepsWhatTheFamiliesCanSay) {
  const auto variant = [&](const char* name, auto change) {
    SCOPED_TRACE(name);
    const fs::path model = recorded_model(name);
    ModelConfig config = load_model_config(model).value();
    change(config);
    const fs::path folder = write_random(root_ / (std::string(name) + "_random"), config, model);
    exported(folder, "f32", "variant.gguf");
    expect_same_files(folder, import(root_ / "variant.gguf", std::string(name) + "_again"));
  };
  variant("gemma3", [](ModelConfig& it) {
    it.layers.assign(7, {.windowed = true});
    it.layers[2].windowed = it.layers[5].windowed = false;
    it.window_rope_theta = 20000;
    it.tied_head = false;
  });
  variant("olmo3", [](ModelConfig& it) { it.layers.assign(5, {.windowed = true}); });
  variant("phi3", [](ModelConfig& it) {
    it.rope_scaling = {};
    it.window = 0;
    it.rotary_share = 1;
  });
  variant("ministral3", [](ModelConfig& it) {
    it.rope_scaling = {
        .kind = "yarn", .factor = 2, .original_max_positions = 256, .attention_factor = 0.1 * std::log(2.0) + 1};
  });
  variant("granite",
          [](ModelConfig& it) { it.rope_scaling = {.kind = "llama3", .factor = 8, .original_max_positions = 8192}; });
  variant("olmoe", [](ModelConfig& it) { it.num_experts = it.experts_per_token = 1; });
  variant("qwen35", [](ModelConfig& it) {
    it.delta_key_heads = it.delta_value_heads = 3;
    it.delta_key_dim = it.delta_value_dim = 4;
    it.head_dim = 256;
    it.layers.assign(5, {.mixer = Mixer::GatedDelta});
    it.layers[3].mixer = Mixer::Attention;
  });
}

TEST_F(ExportGguf, HasHalvesWhereRowsAreNoWholeBlocks) {
  const fs::path tokenizer = recorded_model("smollm");
  ModelConfig config = load_model_config(tokenizer).value();
  config.intermediate_size = 48;
  const std::string bytes = exported(write_random(root_ / "odd", config, tokenizer), "q8_0");
  std::map<std::string, std::string> types;
  const auto file = parse_gguf(bytes, "x").value();
  for (const GgufTensor& tensor : file.tensors) types[std::string(tensor.name)] = tensor.type->name;
  EXPECT_EQ(types["blk.0.ffn_up.weight"], "Q8_0");
  EXPECT_EQ(types["blk.0.ffn_down.weight"], "F16");
}

TEST_F(ExportGguf, OfAdaptersIsOfTheMergedModel) {
  const fs::path folder = recorded_model("qwen2");
  constexpr const char* kRecipe = R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
lora: {rank: 3}
)";
  auto recipe = Recipe::parse(kRecipe, "tiny.yaml", {"model.path=" + folder.string(), "tokenizer.chat=chatml"});
  auto bundle = ModelBundle::make(*recipe);
  ASSERT_TRUE(bundle.ok()) << bundle.error().message;
  for (const NamedTensor& adapter : bundle->policy->adapters()) adapter.tensor.detach().add_(0.125);
  const fs::path checkpoints = root_ / "run" / "checkpoints";
  ASSERT_TRUE(make_folder(checkpoints).ok());
  ASSERT_TRUE(save_checkpoint(checkpoints, 7, {.bundle = &*bundle}, {}, recipe->run, {}).ok());
  const fs::path from = checkpoint_path(checkpoints, 7);
  ASSERT_TRUE(export_model({.path = from, .output = root_ / "merged", .merge_lora = true}).ok());
  ASSERT_TRUE(export_model({.path = from, .output = root_ / "m.gguf", .merge_lora = true, .gguf = "f16"}).ok());
  EXPECT_EQ(*read_file(root_ / "m.gguf"), exported(root_ / "merged", "f16"));
  EXPECT_NE(*read_file(root_ / "m.gguf"), exported(folder, "f16"));

  EXPECT_EQ(problem({.path = from, .output = root_ / "merged" / "x.gguf", .dtype = "float16", .gguf = "f16"}),
            "--gguf: " + from.string() + " holds adapters; expected --merge-lora\n" +
                "--dtype: --gguf has the type of the weights; expected one of the two");
  EXPECT_FALSE(fs::exists(root_ / "merged" / "x.gguf"));
}

TEST_F(ExportGguf, ReplacesNothingButAGgufFile) {
  const fs::path folder = recorded_model("qwen3"), file = root_ / "new" / "model.gguf";
  EXPECT_EQ(problem({.path = folder, .output = file, .gguf = "f16"}), "written") << "the folder is made";
  EXPECT_THAT(problem({.path = folder, .output = file, .gguf = "f16"}), HasSubstr("is there already; expected"));
  EXPECT_EQ(problem({.path = folder, .output = file, .gguf = "f32", .overwrite = true}), "written");
  EXPECT_THAT(problem({.path = folder, .output = folder / "x.gguf", .gguf = "f16"}), HasSubstr("is inside what is"));
  EXPECT_THAT(problem({.path = folder, .output = root_ / "new", .gguf = "f16"}), HasSubstr("is not a file"));
  ASSERT_TRUE(write_file_atomically(file, "mine").ok());
  EXPECT_THAT(problem({.path = folder, .output = file, .gguf = "f16", .overwrite = true}), HasSubstr("this is not"));
  EXPECT_EQ(*read_file(file), "mine");
}

TEST_F(ExportGguf, RefusesWeightsThatAreNotTheConfigurationsOrTooLarge) {
  const fs::path folder = recorded_model("qwen3"), file = root_ / "x.gguf";
  replace(folder / "config.json", "intermediate_size", 64);
  EXPECT_THAT(problem({.path = folder, .output = file, .gguf = "f16"}),
              HasSubstr("weight 'model.layers.0.mlp.gate_proj.weight' has shape [96, 64], expected [64, 64]"));
  replace(folder / "config.json", "intermediate_size", 96);
  std::vector<NamedTensor> tensors;
  for (const auto& [name, tensor] : weights_of(folder)) tensors.push_back({name, tensor.clone()});
  for (NamedTensor& named : tensors)
    if (named.name == "lm_head.weight") named.tensor[3][5] = 70000;
  ASSERT_TRUE(write_model_tensors(folder, tensors, 1 << 30).ok());
  EXPECT_THAT(problem({.path = folder, .output = file, .gguf = "f16"}),
              HasSubstr("tensor 'output.weight' has numbers that are too large for F16"));
  EXPECT_FALSE(fs::exists(file));
  EXPECT_EQ(problem({.path = folder, .output = file, .gguf = "bf16"}), "written");
}

}  // namespace
}  // namespace carnot
