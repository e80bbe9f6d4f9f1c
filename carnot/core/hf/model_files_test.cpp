#include "carnot/core/hf/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/chat_families.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;

class ModelFilesTest : public ::testing::Test {
 protected:
  ModelFilesTest() : root_(fs::temp_directory_path() / ("carnot_model_files_" + std::to_string(::getpid()))) {
    for (const char* folder : {"model", "tokenizer"}) fs::create_directories(root_ / folder);
  }
  ~ModelFilesTest() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& content) const {
    ASSERT_TRUE(write_file_atomically(root_ / path, content).ok());
  }

  fs::path root_;
};

TEST_F(ModelFilesTest, ComeFromTheFolderThatTheyBelongTo) {
  write("model/generation_config.json", R"({"eos_token_id": [3, 5]})");
  write("model/tokenizer_config.json", "the model's");
  write("tokenizer/tokenizer_config.json", "the tokenizer's");
  write("tokenizer/chat_template.jinja", "{{ messages }}");
  write("tokenizer/README.md", "not passed on");
  const auto files = read_model_files(root_ / "model", root_ / "tokenizer");
  ASSERT_TRUE(files.ok()) << files.error().message;
  EXPECT_THAT(*files,
              ElementsAre(Key("chat_template.jinja"), Key("generation_config.json"), Key("tokenizer_config.json")));
  EXPECT_EQ(files->at("tokenizer_config.json"), "the tokenizer's");
  EXPECT_THAT(generation_config(*files, "model")->eos_tokens, ElementsAre(3, 5));
}

TEST_F(ModelFilesTest, AreEmptyWithoutAFolder) {
  const auto files = read_model_files("", "tokenizer.json");
  ASSERT_TRUE(files.ok());
  EXPECT_TRUE(files->empty());
  EXPECT_TRUE(generation_config(*files, "model")->eos_tokens.empty());
}

TEST(ChatTemplateOfFiles, IsFoundInEitherFile) {
  EXPECT_FALSE(chat_template({}).has_value());
  EXPECT_EQ(chat_template({{"tokenizer_config.json", R"({"chat_template": "one"})"}}), "one");
  EXPECT_EQ(
      chat_template(
          {{"tokenizer_config.json",
            R"({"chat_template": [{"name": "rag", "template": "no"}, {"name": "default", "template": "two"}]})"}}),
      "two");
  EXPECT_EQ(chat_template({{"tokenizer_config.json", R"({"chat_template": "one"})"}, {"chat_template.jinja", "three"}}),
            "three");
  EXPECT_FALSE(chat_template({{"tokenizer_config.json", "not JSON"}}).has_value());
}

TEST_F(ModelFilesTest, ABrokenGenerationConfigIsNamed) {
  write("model/generation_config.json", R"({"eos_token_id": "end"})");
  const auto files = read_model_files(root_ / "model", root_ / "tokenizer");
  EXPECT_THAT(generation_config(*files, "model").error().message,
              HasSubstr("model/generation_config.json: eos_token_id"));
}

TEST(NewModelFiles, NameTheEndTokens) {
  const auto tokenizer = Tokenizer::parse(
      train_byte_level_bpe(std::vector<std::string>{"a"},
                           {.vocab_size = 300, .added_tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}})
          .value(),
      "small");
  const ModelFiles files = new_model_files(**make_chat_family("chatml", *tokenizer));
  EXPECT_THAT(generation_config(files, "model")->eos_tokens, ElementsAre(2, 0));
  EXPECT_THAT(files.at("tokenizer_config.json"), HasSubstr("\"eos_token\": \"<|im_end|>\""));
}

}  // namespace
}  // namespace carnot
