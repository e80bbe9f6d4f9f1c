#include "carnot/core/gguf/tokenizer_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/gguf/tokenizer.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GgufTokenizer imported(const fs::path& path) {
  const std::string bytes = read_file(path).value();
  return read_gguf_tokenizer(parse_gguf(bytes, "x").value(), 512, "x").value();
}

FolderTokenizer folder_of(const GgufTokenizer& made) {
  const Json config = Json::parse(made.tokenizer_config_json);
  FolderTokenizer folder{.json = made.tokenizer_json,
                         .config_json = made.tokenizer_config_json,
                         .num_rows = made.num_tokens,
                         .bos_token = made.bos_token,
                         .pad_token = made.pad_token,
                         .eos_tokens = made.eos_tokens};
  if (config.contains("chat_template")) folder.chat_template = config["chat_template"].get<std::string>();
  return folder;
}

FolderTokenizer recorded_folder(const std::string& name) {
  FolderTokenizer folder = folder_of(imported(recorded_path("gguf/" + name + ".gguf")));
  if (folder.eos_tokens.empty()) folder.eos_tokens = {1};
  return folder;
}

std::vector<std::string> problems_of(const FolderTokenizer& folder) {
  GgufSettings settings;
  std::vector<std::string> problems;
  add_tokenizer(folder, "model", settings, problems);
  return problems;
}

/// The problems of smollm's tokenizer with one value of its tokenizer.json changed.
std::vector<std::string> problems_with(const char* pointer, const Json& value, const char* name = "smollm") {
  FolderTokenizer folder = recorded_folder(name);
  Json json = Json::parse(folder.json);
  json[Json::json_pointer(pointer)] = value;
  folder.json = json.dump();
  return problems_of(folder);
}

TEST(GgufTokenizerSettings, GiveTheSameTokenizerAgain) {
  const fs::path path = fs::temp_directory_path() / ("carnot_gguf_tokenizer_" + std::to_string(::getpid()));
  for (const char* name : {"smollm", "llama3", "qwen2", "qwen3", "gpt2", "tekken", "sentence_piece", "granite",
                           "smollm3", "olmoe", "olmo2", "phi3"}) {
    SCOPED_TRACE(name);
    const FolderTokenizer folder = recorded_folder(name);
    GgufSettings settings;
    std::vector<std::string> problems;
    add_tokenizer(folder, "model", settings, problems);
    ASSERT_THAT(problems, ElementsAre());
    ASSERT_TRUE(write_gguf(path, settings, {}).ok());
    const GgufTokenizer again = imported(path);
    EXPECT_EQ(again.tokenizer_json, folder.json);
    EXPECT_EQ(again.num_tokens, folder.num_rows);
    EXPECT_EQ(again.bos_token, folder.bos_token);
    EXPECT_EQ(again.pad_token, folder.pad_token);
    EXPECT_EQ(again.eos_tokens, folder.eos_tokens);
    EXPECT_EQ(folder_of(again).chat_template, folder.chat_template);
    EXPECT_THAT(again.notes, ElementsAre());
  }
  fs::remove(path);
}

TEST(GgufTokenizerSettings, TakeSpecialTokensFromEitherFile) {
  FolderTokenizer folder = recorded_folder("smollm");
  folder.config_json = R"({"eos_token": {"content": "</s>"}, "bos_token": null})";
  folder.bos_token = 0;
  folder.pad_token = -1;
  folder.eos_tokens = {5, 1, 7};
  GgufSettings settings;
  std::vector<std::string> problems;
  add_tokenizer(folder, "model", settings, problems);
  EXPECT_THAT(problems, ElementsAre());
  EXPECT_EQ(settings.at("tokenizer.ggml.eos_token_id"), GgufSetting(1U)) << "tokenizer_config.json's comes first";
  EXPECT_EQ(settings.at("tokenizer.ggml.eot_token_id"), GgufSetting(5U));
  EXPECT_EQ(settings.at("tokenizer.ggml.eom_token_id"), GgufSetting(7U));
  EXPECT_EQ(settings.at("tokenizer.ggml.bos_token_id"), GgufSetting(0U));
  EXPECT_EQ(settings.at("tokenizer.ggml.add_bos_token"), GgufSetting(false));
  EXPECT_FALSE(settings.contains("tokenizer.ggml.padding_token_id"));
}

TEST(GgufTokenizerSettings, RefuseATokenizerThatNoNameStandsFor) {
  const auto unnamed = ElementsAre(HasSubstr("are those of no pre-tokenizer that llama.cpp and Carnot know by name"));
  EXPECT_THAT(problems_with("/model/ignore_merges", true), unnamed);
  EXPECT_THAT(problems_with("/normalizer", {{"type", "NFC"}}), unnamed);
  EXPECT_THAT(problems_with("/pre_tokenizer/pretokenizers/0/individual_digits", false), unnamed);
  EXPECT_THAT(problems_with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "a+", "qwen2"), unnamed);
  const Json steps = Json::parse(recorded_folder("smollm").json)["pre_tokenizer"]["pretokenizers"];
  EXPECT_THAT(problems_with("/pre_tokenizer", steps[1]), ElementsAre()) << "GPT-2's";
}

TEST(GgufTokenizerSettings, RefuseWhatGgufCannotSayAllAtOnce) {
  FolderTokenizer folder = recorded_folder("smollm");
  Json json = Json::parse(folder.json);
  json["added_tokens"][0]["lstrip"] = true;
  json["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"</s>", 1}}, {"cls", {"<s>", 0}}};
  folder.json = json.dump();
  folder.config_json = R"({"pad_token": "<nothing>"})";
  folder.eos_tokens = {};
  folder.num_rows = 600;
  EXPECT_THAT(problems_of(folder), ElementsAre("model: its tokenizer has 700 tokens, its embedding only 600 rows",
                                               "model: tokenizer.json: the added token \"<s>\" has lstrip",
                                               "model: has 0 tokens that end a message; expected one to three",
                                               "model: pad_token: \"<nothing>\" is no token",
                                               HasSubstr("model: tokenizer.json: post_processor does more than")));
  folder.json = "{";
  EXPECT_THAT(problems_of(folder), ElementsAre(HasSubstr("model: tokenizer.json: ")));
}

TEST(GgufTokenizerSettings, RefuseSentencePieceMergesThatFollowFromNoScores) {
  Json merges = Json::parse(recorded_folder("sentence_piece").json)["model"]["merges"];
  const auto refused = ElementsAre(HasSubstr("model.merges follow from no scores"));
  Json fewer = merges;
  fewer.erase(fewer.begin() + 20);
  EXPECT_THAT(problems_with("/model/merges", fewer, "sentence_piece"), refused);
  Json turned = merges;
  std::swap(turned.front(), turned.back());
  EXPECT_THAT(problems_with("/model/merges", turned, "sentence_piece"), ElementsAre()) << "other scores";
  EXPECT_THAT(problems_with("/added_tokens/1/normalized", true, "sentence_piece"),
              ElementsAre(HasSubstr("normalized")));
}

}  // namespace
}  // namespace carnot
