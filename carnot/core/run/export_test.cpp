#include "carnot/core/run/export.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/nn/token_statistics.h"
#include "carnot/core/run/checkpoint.h"
#include "carnot/core/run/checkpoint_folder.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecipe = R"(
model: {family: qwen3, hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1,
        head_dim: 16, init_std: 0.3}
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
lora: {rank: 3}
)";

constexpr const char* kRecipeOnAModel = R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
lora: {rank: 3}
)";

class Export : public ::testing::Test {
 protected:
  Export() : root_(fs::temp_directory_path() / ("carnot_export_test_" + std::to_string(::getpid()))) {
    fs::create_directories(root_);
  }
  ~Export() override { fs::remove_all(root_); }

  /// A checkpoint whose adapters, if it has any, are as training leaves them: not zero.
  fs::path checkpoint(const std::vector<std::string>& overrides = {}, const char* text = kRecipe) {
    auto recipe = Recipe::parse(text, "tiny.yaml", overrides);
    auto bundle = ModelBundle::make(*recipe);
    EXPECT_TRUE(bundle.ok()) << (bundle.ok() ? "" : bundle.error().message);
    const at::NoGradGuard no_grad;
    RandomStream stream(2);
    for (const NamedTensor& adapter : bundle->policy->adapters())
      for (std::int64_t i = 0; i < adapter.tensor.numel(); ++i) adapter.tensor.view(-1)[i] += 0.1 * stream.normal();
    const fs::path checkpoints = root_ / "run" / "checkpoints";
    EXPECT_TRUE(make_folder(checkpoints).ok());
    EXPECT_TRUE(save_checkpoint(checkpoints, 7, {.bundle = &*bundle}, {}, recipe->run, {}).ok());
    return checkpoint_path(checkpoints, 7);
  }

  Json json(const fs::path& path) const { return Json::parse(*read_file(root_ / path)); }

  fs::path root_;
};

/// The most likely continuation of a prompt and its log-probabilities, each token from the whole prefix.
struct Continuation {
  std::vector<std::int64_t> tokens{5, 9, 2};
  std::vector<double> log_probs{};
};
Continuation greedy(const Model& model) {
  const at::NoGradGuard no_grad;
  Continuation out;
  for (int length = 3; length < 40; ++length) {
    const at::Tensor hidden =
        model.hidden(at::tensor(out.tokens, at::kLong), at::arange(length), PackedAttention{.offsets = {0, length}});
    const at::Tensor log_p = model.logits(hidden.slice(0, length - 1)).log_softmax(-1)[0];
    out.tokens.push_back(log_p.argmax().item<std::int64_t>());
    out.log_probs.push_back(log_p.max().item<double>());
  }
  return out;
}

TEST_F(Export, MergedHasTheGreedyTokensOfTheTrainedPolicy) {
  const fs::path from = checkpoint();
  const auto done = export_model({.path = from, .output = root_ / "merged", .merge_lora = true});
  ASSERT_TRUE(done.ok()) << done.error().message;
  const auto policy = load_policy(from, at::TensorOptions(at::kFloat));
  const auto merged = load_model(root_ / "merged", at::TensorOptions(at::kFloat));
  ASSERT_TRUE(policy.ok() && merged.ok());
  EXPECT_TRUE(policy->has_adapters());
  EXPECT_FALSE(merged->has_adapters());
  const Continuation a = greedy(*policy), b = greedy(*merged);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_GT(std::set(a.tokens.begin(), a.tokens.end()).size(), 5u) << "a continuation of one token would tell little";
  for (std::size_t i = 0; i < a.log_probs.size(); ++i) EXPECT_NEAR(a.log_probs[i], b.log_probs[i], 1e-5);
  const auto base = load_model(root_ / "run" / "base", at::TensorOptions(at::kFloat));
  EXPECT_NE(greedy(*base).tokens, a.tokens);
  EXPECT_FALSE(fs::exists(root_ / "merged" / "optimizer.safetensors"));
  EXPECT_TRUE(fs::exists(root_ / "merged" / "tokenizer.json"));
}

TEST_F(Export, ApartIsTheBaseAndAPeftFolder) {
  const fs::path from = checkpoint();
  const auto done = export_model({.path = from, .output = root_ / "apart"});
  ASSERT_TRUE(done.ok()) << done.error().message;
  auto apart = load_model(root_ / "apart" / "base", at::TensorOptions(at::kFloat));
  ASSERT_TRUE(apart.ok()) << apart.error().message;
  ASSERT_TRUE(load_adapters(*apart, root_ / "apart" / "adapter").ok());
  const auto policy = load_policy(from, at::TensorOptions(at::kFloat));
  EXPECT_EQ(greedy(*apart).log_probs, greedy(*policy).log_probs);
  EXPECT_EQ(json("apart/adapter/adapter_config.json")["base_model_name_or_path"], (root_ / "apart" / "base").string());
  EXPECT_TRUE(fs::exists(root_ / "apart" / "base" / "tokenizer.json"));
}

TEST_F(Export, OfFusedProjectionsIsMergedOrOfTheOthersAlone) {
  const fs::path from = checkpoint({"model.family=phi3"});
  ASSERT_TRUE(export_model({.path = from, .output = root_ / "merged", .merge_lora = true}).ok());
  const auto policy = load_policy(from, at::TensorOptions(at::kFloat));
  const auto merged = load_model(root_ / "merged", at::TensorOptions(at::kFloat));
  ASSERT_TRUE(policy.ok() && merged.ok());
  EXPECT_EQ(greedy(*policy).tokens, greedy(*merged).tokens);
  std::set<std::string> names;
  const auto file = read_model_tensors(root_ / "merged");
  for (const NamedTensor& named : file->tensors) names.insert(named.name);
  EXPECT_TRUE(names.contains("model.layers.1.self_attn.qkv_proj.weight"));
  EXPECT_TRUE(names.contains("model.layers.1.mlp.gate_up_proj.weight"));
  EXPECT_FALSE(names.contains("model.layers.1.self_attn.q_proj.weight"));
  const auto apart = export_model({.path = from, .output = root_ / "apart"});
  ASSERT_FALSE(apart.ok());
  EXPECT_THAT(apart.error().message, ::testing::HasSubstr("q_proj of qkv_proj, k_proj of qkv_proj"));
  EXPECT_THAT(apart.error().message, ::testing::HasSubstr("expected --merge-lora"));
  fs::remove_all(root_ / "run");
  const fs::path others = checkpoint({"model.family=phi3", "lora.targets=[o_proj, down_proj]"});
  ASSERT_TRUE(export_model({.path = others, .output = root_ / "apart"}).ok());
  auto loaded = load_model(root_ / "apart" / "base", at::TensorOptions(at::kFloat));
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  ASSERT_TRUE(load_adapters(*loaded, root_ / "apart" / "adapter").ok());
  EXPECT_EQ(greedy(*loaded).log_probs, greedy(*load_policy(others, at::TensorOptions(at::kFloat))).log_probs);
}

TEST_F(Export, LetsARunOnItEndWhereItsPositionsDo) {
  ASSERT_TRUE(export_model({.path = checkpoint({"model.family=phi3", "lora.rank=0"}), .output = root_ / "phi"}).ok());
  OrderedJson config = OrderedJson::parse(*read_file(root_ / "phi" / "config.json"));
  config["original_max_position_embeddings"] = 512;
  config["rope_scaling"] = {{"type", "longrope"},
                            {"short_factor", std::vector<double>(8, 1.0)},
                            {"long_factor", std::vector<double>(8, 2.0)}};
  const auto problem = [&] {
    EXPECT_TRUE(write_file_atomically(root_ / "phi" / "config.json", config.dump()).ok());
    auto recipe = Recipe::parse(kRecipeOnAModel, "tiny.yaml",
                                {"model.path=" + (root_ / "phi").string(), "rollout.max_context_tokens=600"});
    const auto bundle = ModelBundle::make(*recipe);
    return bundle ? "" : bundle.error().message;
  };
  EXPECT_THAT(problem(), ::testing::HasSubstr("rollout.max_context_tokens: 600; expected at most 512"));
  config["rope_scaling"]["short_factor"] = config["rope_scaling"]["long_factor"];
  EXPECT_EQ(problem(), "") << "nothing changes behind them";
}

TEST_F(Export, OfAdaptersOnAModelKeepsItsTypeAndNamesIt) {
  ASSERT_TRUE(export_model({.path = checkpoint({"lora.rank=0"}), .output = root_ / "half", .dtype = "bfloat16"}).ok());
  const fs::path from = checkpoint({"model.path=" + (root_ / "half").string()}, kRecipeOnAModel);
  ASSERT_TRUE(export_model({.path = from, .output = root_ / "merged", .merge_lora = true}).ok());
  ASSERT_TRUE(export_model({.path = from, .output = root_ / "apart"}).ok());
  EXPECT_EQ(json("merged/config.json")["torch_dtype"], "bfloat16");
  EXPECT_EQ(json("apart/adapter/adapter_config.json")["base_model_name_or_path"], (root_ / "half").string());
  const auto policy = load_merged(from, at::TensorOptions(at::kFloat));
  const auto merged = load_model(root_ / "merged", at::TensorOptions(at::kFloat));
  ASSERT_TRUE(policy.ok() && merged.ok());
  for (std::size_t i = 0; i < policy->parameters().size(); ++i)
    EXPECT_TRUE(
        at::equal(policy->parameters()[i].tensor.to(at::kBFloat16).to(at::kFloat), merged->parameters()[i].tensor));
  const auto stored = read_model_tensors(root_ / "half"), base = read_model_tensors(root_ / "apart" / "base");
  for (std::size_t i = 0; i < stored->tensors.size(); ++i)
    EXPECT_TRUE(at::equal(stored->tensors[i].tensor, base->tensors[i].tensor));
}

TEST_F(Export, SaysItsTypeInTheConfigurationAndRoundsOnce) {
  const fs::path from = checkpoint({"lora.rank=0"});
  for (const auto& [name, type] :
       {std::pair("float32", at::kFloat), std::pair("bfloat16", at::kBFloat16), std::pair("float16", at::kHalf)}) {
    ASSERT_TRUE(export_model({.path = from, .output = root_ / name, .dtype = name}).ok());
    EXPECT_EQ(json(fs::path(name) / "config.json")["torch_dtype"], name);
    const auto stored = read_model_tensors(from), written = read_model_tensors(root_ / name);
    ASSERT_EQ(stored->tensors.size(), written->tensors.size());
    for (std::size_t i = 0; i < stored->tensors.size(); ++i)
      EXPECT_TRUE(at::equal(written->tensors[i].tensor, stored->tensors[i].tensor.to(type)))
          << written->tensors[i].name;
  }
}

TEST_F(Export, WritesShardsBelowALimitWithAnIndex) {
  const fs::path from = checkpoint({"lora.rank=0", "model.hidden_size=256", "model.intermediate_size=1024"});
  ASSERT_TRUE(export_model({.path = from, .output = root_ / "shards", .shard_megabytes = 3}).ok());
  EXPECT_FALSE(fs::exists(root_ / "shards" / "model.safetensors"));
  const Json index = json("shards/model.safetensors.index.json");
  std::int64_t bytes = 0;
  std::set<std::string> files;
  const auto stored = read_model_tensors(from);
  for (const NamedTensor& named : stored->tensors) {
    bytes += static_cast<std::int64_t>(named.tensor.nbytes());
    files.insert(index["weight_map"].at(named.name).get<std::string>());
  }
  EXPECT_EQ(index["metadata"]["total_size"], bytes);
  EXPECT_GE(files.size(), 3u);
  for (const std::string& file : files) EXPECT_LE(fs::file_size(root_ / "shards" / file), 3'100'000u);
  const auto model = load_model(root_ / "shards", at::TensorOptions(at::kFloat));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(greedy(*model).log_probs, greedy(*load_model(from, at::TensorOptions(at::kFloat))).log_probs);
}

TEST_F(Export, RefusesAFolderThatHoldsSomethingUnlessTold) {
  const fs::path from = checkpoint(), to = root_ / "there";
  fs::create_directories(to);
  EXPECT_TRUE(export_model({.path = from, .output = to, .merge_lora = true}).ok()) << "an empty folder is no reason";
  const auto refused = export_model({.path = from, .output = to, .merge_lora = true, .dtype = "bfloat16"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("--overwrite"));
  EXPECT_EQ(json("there/config.json")["torch_dtype"], "float32");
  EXPECT_TRUE(
      export_model({.path = from, .output = to, .merge_lora = true, .dtype = "bfloat16", .overwrite = true}).ok());
  EXPECT_EQ(json("there/config.json")["torch_dtype"], "bfloat16");
}

TEST_F(Export, RefusesAnOutputThatHoldsOrIsTheSource) {
  const fs::path run = root_ / "run", from = checkpoint({"lora.rank=0"});
  fs::create_directories(run / "checkpoints");
  fs::rename(from, run / "checkpoints" / "global_step_7");
  const fs::path source = run / "checkpoints" / "global_step_7";
  fs::create_directory_symlink(run, root_ / "link");
  const auto refused = [&](const fs::path& path, const fs::path& output) {
    const auto done = export_model({.path = path, .output = output, .overwrite = true});
    return done ? "written" : done.error().message;
  };
  for (const fs::path& output : {run, run / "", root_, run / "checkpoints", source, root_ / "link", run / "x" / ".."})
    for (const fs::path& path : {run, source, root_ / "link"})
      EXPECT_THAT(refused(path, output), ::testing::HasSubstr("holds what is exported")) << path << " to " << output;
  EXPECT_THAT(refused(run, source / "inner"), ::testing::HasSubstr("is inside what is exported"));
  EXPECT_THAT(refused(run, run / "checkpoints" / "global_step_9"), ::testing::HasSubstr("taken for a checkpoint"));
  EXPECT_TRUE(verify_checkpoint(source).ok());

  // A folder of links, as Hugging Face's cache has them.
  ASSERT_EQ(refused(run, root_ / "first"), "written");
  fs::create_directories(root_ / "links");
  for (const auto& entry : fs::directory_iterator(root_ / "first"))
    fs::create_symlink(entry.path(), root_ / "links" / entry.path().filename());
  EXPECT_THAT(refused(root_ / "links", root_ / "first"), ::testing::HasSubstr("links to, which would be lost"));
}

TEST_F(Export, OverwritesNothingButWhatAnExportWrote) {
  const fs::path from = checkpoint({"lora.rank=0"}), to = root_ / "there";
  const auto problem = [&](const fs::path& output) {
    const auto done = export_model({.path = from, .output = output, .overwrite = true});
    return done ? std::string() : done.error().message;
  };
  ASSERT_TRUE(write_file_atomically(root_ / "file", "mine").ok());
  EXPECT_THAT(problem(root_ / "file"), ::testing::HasSubstr("is not a folder"));
  EXPECT_EQ(problem(to / ""), "") << "a slash at the end is no reason";
  EXPECT_EQ(problem(to), "");
  ASSERT_TRUE(write_file_atomically(to / "notes.txt", "mine").ok());
  EXPECT_THAT(problem(to), ::testing::HasSubstr("holds notes.txt, which no export wrote"));
  fs::remove(to / "notes.txt");
  fs::remove(to / "carnot_export.json");
  EXPECT_THAT(problem(to), ::testing::HasSubstr("and this folder has none"));
  EXPECT_TRUE(fs::exists(to / "model.safetensors"));
}

TEST_F(Export, RefusesWeightsThatAreNotFinite) {
  const fs::path from = checkpoint({"lora.rank=0"});
  ASSERT_TRUE(export_model({.path = from, .output = root_ / "model"}).ok());
  const fs::path file = root_ / "model" / "model.safetensors";
  std::vector<NamedTensor> tensors;
  const auto whole = read_weights(file);
  for (const NamedTensor& named : whole->tensors) tensors.push_back({named.name, named.tensor.clone()});
  const auto problem_with = [&](double value, at::ScalarType type) {
    std::vector<NamedTensor> spoilt = tensors;
    for (NamedTensor& named : spoilt) named.tensor = named.tensor.to(type, /*non_blocking=*/false, /*copy=*/true);
    spoilt[2].tensor.view(-1)[5] = value;
    EXPECT_TRUE(write_safetensors(file, spoilt).ok());
    const auto loaded = load_model(root_ / "model", at::TensorOptions(at::kFloat));
    EXPECT_EQ(export_model({.path = root_ / "model", .output = root_ / "other", .overwrite = true}).ok(), loaded.ok());
    return loaded ? std::string() : loaded.error().message;
  };
  const std::string expected =
      file.string() + ": tensor '" + tensors[2].name + "' holds NaN or infinite numbers; expected finite weights";
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    EXPECT_EQ(problem_with(std::nan(""), type), expected);
    EXPECT_EQ(problem_with(-INFINITY, type), expected);
    EXPECT_EQ(problem_with(type == at::kHalf ? 65504 : 3e38, type), "") << "the largest number is one";
  }
}

TEST_F(Export, LeavesNothingBehindWhereItFails) {
  const fs::path from = checkpoint({"lora.rank=0"});
  const auto file = read_model_tensors(from);
  std::vector<NamedTensor> tensors;
  for (const NamedTensor& named : file->tensors) tensors.push_back({named.name, named.tensor.clone()});
  tensors[0].tensor.view(-1)[0] = 1e30;
  ASSERT_TRUE(make_folder(root_ / "model").ok());
  ASSERT_TRUE(write_safetensors(root_ / "model" / "model.safetensors", tensors).ok());
  fs::copy(from / "config.json", root_ / "model" / "config.json");
  const auto refused = export_model({.path = root_ / "model", .output = root_ / "half", .dtype = "float16"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr(tensors[0].name + "' has numbers that are too large"));
  for (const auto& entry : fs::directory_iterator(root_))
    EXPECT_THAT(entry.path().filename().string(), ::testing::Not(::testing::HasSubstr("half")));
  EXPECT_THAT(export_model({.path = from, .output = root_ / "x", .merge_lora = true}).error().message,
              ::testing::HasSubstr("holds no adapters"));
}

}  // namespace
}  // namespace carnot
