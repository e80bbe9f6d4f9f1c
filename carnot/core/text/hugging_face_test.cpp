#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/tokenizer.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using nlohmann::json;

const std::string kFolder = source_path("tests/golden/tokenizer/");

std::string trained_json() {
  const std::vector<std::string> texts = {
      "<|im_start|>user\nWhere was Marta Quell born?<|im_end|>\n<think>Marta was born in Oslo.</think>",
      "<think>Quell lives in Oslo, in Oslo!</think><answer>Oslo</answer> 2024 2024",
      "Where was Tom born? In Bergen. Where was Ann born? In Bergen, in Bergen.",
      "caf\u00E9 caf\u00E9 Нещо Нещо 你好 你好"};
  return train_byte_level_bpe(texts, {.vocab_size = 330,
                                      .added_tokens = {"<|im_start|>", "<|im_end|>", "<think>", "</think>", "<answer>",
                                                       "</answer>", "\\boxed{"},
                                      .protected_words = {"Quell", "Nowhere", "Oslo"}})
      .value();
}

// Recorded by tools/golden/tokenizer.py, which loads this very file.
TEST(HuggingFace, LoadsWhatIsTrained) {
  const std::string trained = trained_json();
  const bool same = trained == read_file(kFolder + "trained.json").value();
  if (!same) {
    ASSERT_TRUE(write_file_atomically(build_path("trained.json"), trained).ok());
  }
  EXPECT_TRUE(same) << "the trained file is now another: " << build_path("trained.json");
}

void expect_recorded_ids(const std::string& recorded, std::size_t num_variants) {
  const json trained = json::parse(read_file(kFolder + "trained.json").value());
  const json variants = json::parse(read_file(kFolder + recorded).value());
  EXPECT_EQ(variants.size(), num_variants);
  for (const json& variant : variants) {
    json file = trained;
    file.merge_patch(variant.at("patch"));
    const auto tokenizer = Tokenizer::parse(file.dump(), variant.at("name"));
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    for (const json& one : variant.at("cases"))
      EXPECT_EQ(tokenizer->encode(one.at("text").get<std::string>()), one.at("ids").get<std::vector<TokenId>>())
          << variant.at("name") << ": " << one;
  }
}

TEST(HuggingFace, EncodesAsWeDoWithEveryKindOfStep) { expect_recorded_ids("expected.json", 9); }

TEST(HuggingFace, EncodesBytesThatAVocabularyLacksAsWeDo) { expect_recorded_ids("lacking_bytes.json", 7); }

TEST(HuggingFace, EncodesAndDecodesAddedTokensOfEveryFlagAsWeDo) {
  const json recorded = json::parse(read_file(kFolder + "added_tokens.json").value());
  const auto texts = recorded.at("texts").get<std::vector<std::string>>();
  EXPECT_EQ(recorded.at("cases").size(), 3 * 16u);
  for (const json& one : recorded.at("cases")) {
    SCOPED_TRACE(one.at("file").get<std::string>() + " with " + one.at("added_tokens").back().dump());
    json file = json::parse(read_file(kFolder + one.at("file").get<std::string>() + ".json").value());
    file["added_tokens"] = one.at("added_tokens");
    const auto tokenizer = Tokenizer::parse(file.dump(), "flags");
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    const auto ids = one.at("ids").get<std::vector<std::vector<TokenId>>>();
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(tokenizer->encode(texts[i]), ids[i]) << texts[i];
    for (std::size_t i = 0; i < ids.size(); ++i)
      EXPECT_EQ(tokenizer->decode_whole(ids[i]), one.at("decoded").at(i).get<std::string>());
  }
}

}  // namespace
}  // namespace carnot
