#include "carnot/core/hf/base_model.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/adapter_folder.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const fs::path kModel = source_path("tests/golden/transformers/qwen2");

class BaseModels : public ::testing::Test {
 protected:
  BaseModels() : root_(fs::temp_directory_path() / ("carnot_base_model_test_" + std::to_string(::getpid()))) {
    fs::create_directories(root_ / "run/checkpoints/global_step_1");
    fs::copy(kModel, root_ / "model", fs::copy_options::recursive);
  }
  ~BaseModels() override { fs::remove_all(root_); }

  fs::path checkpoint() const { return root_ / "run/checkpoints/global_step_1"; }

  /// A checkpoint of fresh adapters that refers to `base`.
  void write_checkpoint(const BaseModel& base) const {
    Model model = load_model(base.folder, at::TensorOptions(at::kFloat)).value();
    model.add_adapters({.rank = 2}, 1);
    const fs::path adapter = checkpoint() / kAdapterFolder;
    fs::create_directories(adapter);
    fs::copy_file(base.folder / "config.json", checkpoint() / "config.json", fs::copy_options::overwrite_existing);
    const std::string config = R"({"peft_type": "LORA", "r": 2, "lora_alpha": 16})";
    ASSERT_TRUE(write_file_atomically(adapter / "adapter_config.json", config).ok());
    ASSERT_TRUE(write_safetensors(adapter / "adapter_model.safetensors", peft_tensors(model)).ok());
    ASSERT_TRUE(write_file_atomically(checkpoint() / kBaseModelFile, base_model_json(base, checkpoint())).ok());
  }

  fs::path root_;
};

TEST_F(BaseModels, AreFoundAgainWhileTheirFilesAreTheSame) {
  const auto base = base_model_of(root_ / "model");
  ASSERT_TRUE(base.ok()) << base.error().message;
  write_checkpoint(*base);
  EXPECT_EQ((*read_base_model(checkpoint()))->folder, root_ / "model");
  EXPECT_TRUE(check_base_model(*base).ok());
  ASSERT_TRUE(write_file_atomically(root_ / "model" / "README.md", "of no account").ok());
  EXPECT_TRUE(check_base_model(*base).ok());
  const auto policy = load_policy(checkpoint(), at::TensorOptions(at::kFloat));
  ASSERT_TRUE(policy.ok()) << policy.error().message;
  EXPECT_EQ(policy->lora().rank, 2);

  ASSERT_TRUE(write_file_atomically(root_ / "model" / "config.json", *read_file(kModel / "config.json") + " ").ok());
  const auto changed = load_policy(checkpoint(), at::TensorOptions(at::kFloat));
  ASSERT_FALSE(changed.ok());
  EXPECT_THAT(changed.error().message, AllOf(HasSubstr("model: changed since"), HasSubstr(": config.json;")));
}

TEST_F(BaseModels, ThatMovedAreNamedOrFoundWhereTheyAreNow) {
  write_checkpoint(*base_model_of(root_ / "model"));
  fs::rename(root_ / "model", root_ / "elsewhere");
  const auto gone = load_policy(checkpoint(), at::TensorOptions(at::kFloat));
  ASSERT_FALSE(gone.ok());
  EXPECT_THAT(gone.error().message, HasSubstr((root_ / "model").string() + ": is not there any more"));
  EXPECT_TRUE(load_policy(checkpoint(), at::TensorOptions(at::kFloat), root_ / "elsewhere").ok());
  EXPECT_FALSE(load_policy(checkpoint(), at::TensorOptions(at::kFloat), source_path("tests/golden/transformers/qwen3")))
      << "another model";
}

TEST_F(BaseModels, OfARunMoveWithItsFolder) {
  fs::rename(root_ / "model", root_ / "run/base");
  write_checkpoint(*base_model_of(root_ / "run/base"));
  EXPECT_THAT(*read_file(checkpoint() / kBaseModelFile), HasSubstr("\"../../base\""));
  fs::rename(root_ / "run", root_ / "moved");
  EXPECT_TRUE(load_policy(root_ / "moved/checkpoints/global_step_1", at::TensorOptions(at::kFloat)).ok());
}

TEST_F(BaseModels, ThatHaveAdaptersThemselvesAreMerged) {
  write_checkpoint(*base_model_of(root_ / "model"));
  const auto outer = base_model_of(checkpoint());
  ASSERT_TRUE(outer.ok()) << outer.error().message;
  EXPECT_TRUE(outer->sha256.contains("adapter/adapter_model.safetensors"));
  EXPECT_TRUE(outer->sha256.contains(kBaseModelFile));
  EXPECT_FALSE(load_merged(checkpoint(), at::TensorOptions(at::kFloat))->has_adapters());
  EXPECT_EQ(*stored_dtype(checkpoint()), *stored_dtype(root_ / "model"));
}

TEST_F(BaseModels, WhoseFileIsDamagedAreRefused) {
  for (const char* text : {"", "[]", "{}", R"({"version": "1", "folder": "/x", "sha256": {"a": "b"}})",
                           R"({"version": 2, "folder": "/x", "sha256": {"a": "b"}})",
                           R"({"version": 1, "folder": 3, "sha256": {"a": "b"}})",
                           R"({"version": 1, "folder": "/x", "sha256": {"a": 1}})"}) {
    ASSERT_TRUE(write_file_atomically(checkpoint() / kBaseModelFile, text).ok());
    EXPECT_FALSE(read_base_model(checkpoint()).ok()) << text;
  }
  fs::remove(checkpoint() / kBaseModelFile);
  EXPECT_FALSE(read_base_model(checkpoint())->has_value());
}

}  // namespace
}  // namespace carnot
