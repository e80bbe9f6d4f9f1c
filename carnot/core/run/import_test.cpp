#include "carnot/core/run/import.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/text/tokenizer.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Import : public ::testing::Test {
 protected:
  Import() : root_(fs::temp_directory_path() / ("carnot_import_test_" + std::to_string(::getpid()))) {
    fs::create_directories(root_);
  }
  ~Import() override { fs::remove_all(root_); }

  static fs::path recorded(const std::string& name) { return recorded_path("gguf/" + name + ".gguf"); }
  std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(root_), fs::directory_iterator()));
  }

  fs::path root_;
};

// Recorded by tools/golden/gguf_files.py and gguf_families.py.
TEST_F(Import, GivesTheBitsOfTheWeightsUnderTheirHuggingFaceNames) {
  Json expected = Json::parse(read_file(recorded_path("gguf/expected.json")).value());
  expected.update(Json::parse(read_file(recorded_path("gguf/families.json")).value()));
  for (const char* name : {"smollm", "llama3", "qwen2", "qwen3", "smollm3", "gemma3", "granite", "qwen3moe", "olmoe",
                           "olmo2", "olmo3", "phi3", "ministral3", "lfm2", "qwen35"}) {
    SCOPED_TRACE(name);
    const fs::path output = root_ / name;
    const auto done = import_model({.file = recorded(name), .output = output, .dtype = "float32"});
    ASSERT_TRUE(done.ok()) << done.error().message;
    const auto file = read_model_tensors(output);
    ASSERT_TRUE(file.ok()) << file.error().message;
    const Json& hashes = expected[name]["tensors"];
    EXPECT_EQ(file->tensors.size(), hashes.size());
    for (const NamedTensor& named : file->tensors)
      EXPECT_EQ(sha256_hex({static_cast<const char*>(named.tensor.const_data_ptr()), named.tensor.nbytes()}),
                hashes.value(named.name, ""))
          << named.name;
    EXPECT_TRUE(load_model(output, at::TensorOptions(at::kFloat)).ok());
    EXPECT_TRUE(Tokenizer::load(output).ok());
  }
}

TEST_F(Import, RoundsToBfloat16AsLibTorchDoesInOneFileOrInShards) {
  ASSERT_TRUE(import_model({.file = recorded("qwen3"), .output = root_ / "float32", .dtype = "float32"}).ok());
  ASSERT_TRUE(import_model({.file = recorded("qwen3"), .output = root_ / "whole"}).ok());
  ASSERT_TRUE(import_model({.file = recorded("qwen3"), .output = root_ / "shards", .shard_megabytes = 0.02}).ok());
  EXPECT_FALSE(fs::exists(root_ / "shards" / "model.safetensors"));
  EXPECT_EQ(Json::parse(*read_file(root_ / "whole" / "config.json"))["torch_dtype"], "bfloat16");
  std::map<std::string, at::Tensor> exact;
  const auto float32 = read_model_tensors(root_ / "float32").value();
  for (const NamedTensor& named : float32.tensors) exact[named.name] = named.tensor;
  for (const char* folder : {"whole", "shards"}) {
    const auto file = read_model_tensors(root_ / folder);
    EXPECT_EQ(file->tensors.size(), exact.size());
    for (const NamedTensor& named : file->tensors)
      EXPECT_TRUE(at::equal(named.tensor, exact.at(named.name).to(at::kBFloat16))) << named.name;
  }
}

TEST_F(Import, RefusesAFolderThatHoldsSomethingUnlessTold) {
  const ImportOptions options{.file = recorded("qwen3"), .output = root_ / "model"};
  ASSERT_TRUE(import_model(options).ok());
  EXPECT_THAT(import_model(options).error().message, HasSubstr("--overwrite"));
  ImportOptions again = options;
  again.overwrite = true;
  EXPECT_TRUE(import_model(again).ok());
  ASSERT_TRUE(write_file_atomically(root_ / "model" / "mine.txt", "mine").ok());
  EXPECT_THAT(import_model(again).error().message, HasSubstr("holds mine.txt"));
}

TEST_F(Import, LeavesNothingBehindWhereItFails) {
  const auto problem = [&](const fs::path& file) {
    return import_model({.file = file, .output = root_ / "model"}).error().message;
  };
  EXPECT_THAT(problem(root_ / "nowhere.gguf"), HasSubstr("nowhere.gguf: cannot open"));
  EXPECT_THAT(problem(recorded("gpt2")), HasSubstr("gpt2.gguf: llama.block_count: is missing"));
  EXPECT_EQ(entries(), 0u);

  // The last number of the last tensor is made infinite: found only when it is written.
  std::string bytes = read_file(recorded("smollm")).value();
  const float infinite = INFINITY;
  bytes.replace(bytes.size() - sizeof infinite, sizeof infinite, reinterpret_cast<const char*>(&infinite),
                sizeof infinite);
  ASSERT_TRUE(write_file_atomically(root_ / "damaged.gguf", bytes).ok());
  EXPECT_THAT(problem(root_ / "damaged.gguf"),
              HasSubstr("tensor 'output_norm.weight' holds numbers that are not finite"));
  EXPECT_EQ(entries(), 1u);
}

}  // namespace
}  // namespace carnot
