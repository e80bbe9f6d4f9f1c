#include "carnot/core/text/bpe_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/text/tokenizer.h"
#include "testing/random_text.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<TokenId>;

const std::vector<std::string> kTexts = {
    "<|im_start|>user\nWhere was Marta Quell born?<|im_end|>\n<think>Marta was born in Oslo.</think>",
    "<think>Quell lives in Oslo, in Oslo!</think><answer>Oslo</answer> 2024 2024",
    "Where was Tom born? In Bergen. Where was Ann born? In Bergen, in Bergen."};

BpeTrainingOptions options() {
  return {.vocab_size = 330,
          .added_tokens = {"<|im_start|>", "<|im_end|>", "<think>", "</think>", "<answer>", "</answer>", "\\boxed{"},
          .protected_words = {"Quell", "Nowhere", "Oslo"}};
}

Tokenizer train(const BpeTrainingOptions& chosen) {
  return Tokenizer::parse(train_byte_level_bpe(kTexts, chosen).value(), "trained").value();
}

TEST(BpeTraining, AddedTokensComeFirstAndEveryByteIsThere) {
  const Tokenizer tokenizer = train(options());
  EXPECT_EQ(tokenizer.id_of("<|im_start|>"), 0);
  EXPECT_EQ(tokenizer.id_of("\\boxed{"), 6);
  EXPECT_TRUE(tokenizer.is_added(6));
  EXPECT_LE(tokenizer.vocab_size(), 330);
  RandomStream random(10);
  for (int trial = 0; trial < 300; ++trial) {
    const std::string bytes = testing::random_bytes(random, 20);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(bytes)), tokenizer.normalize(bytes));
  }
}

TEST(BpeTraining, AProtectedWordIsOneTokenWhereverItStands) {
  const Tokenizer tokenizer = train(options());
  for (const std::string word : {"Quell", "Nowhere", "Oslo"}) {
    EXPECT_EQ(tokenizer.encode(word), Ids{*tokenizer.id_of(word)});
    EXPECT_EQ(tokenizer.encode(" " + word), Ids{*tokenizer.id_of(" " + word)});
    const Ids in_text = tokenizer.encode("<answer>" + word + "</answer> (" + word + "), " + word + ".");
    EXPECT_EQ(std::count(in_text.begin(), in_text.end(), *tokenizer.id_of(word)), 2);
    EXPECT_EQ(std::count(in_text.begin(), in_text.end(), *tokenizer.id_of(" " + word)), 1);
  }
}

TEST(BpeTraining, AProtectedDigitIsOneTokenAndTheBlankBeforeItAnother) {
  const Tokenizer tokenizer = train({.vocab_size = 300, .protected_words = {"7", "Oslo"}});
  EXPECT_EQ(tokenizer.encode("7"), Ids{*tokenizer.id_of("7")});
  EXPECT_EQ(tokenizer.encode(" 77").size(), 3u);
}

TEST(BpeTraining, MergesTheMostFrequentPairFirst) {
  const std::vector<std::string> texts = {"zz zz zz ab ab"};
  const auto file = nlohmann::json::parse(train_byte_level_bpe(texts, {.vocab_size = 300}).value());
  // "zz" occurs three times; of the pairs that occur twice, the smaller ids go first.
  EXPECT_EQ(file["model"]["merges"], (std::vector<std::string>{"z z", "Ġ a", "Ġ zz", "Ġa b"}));
}

TEST(BpeTraining, IsDeterministicWhateverTheOrderOfTexts) {
  const auto reversed = std::vector<std::string>(kTexts.rbegin(), kTexts.rend());
  EXPECT_EQ(train_byte_level_bpe(kTexts, options()).value(), train_byte_level_bpe(reversed, options()).value());
}

TEST(BpeTraining, ReachesTheAskedSizeOrRunsOutOfPairs) {
  EXPECT_EQ(train({.vocab_size = 280}).vocab_size(), 280);
  const Tokenizer exhausted = train({.vocab_size = 100000});
  EXPECT_LT(exhausted.vocab_size(), 400);
  EXPECT_EQ(exhausted.encode(" Bergen").size(), 1u);
}

TEST(BpeTraining, RefusesWhatItCannotPromise) {
  const auto message = [](BpeTrainingOptions chosen) {
    const auto trained = train_byte_level_bpe(kTexts, chosen);
    return trained.ok() ? std::string("accepted") : trained.error().message;
  };
  EXPECT_THAT(message({.vocab_size = 100}), HasSubstr("vocab_size: expected at least 256"));
  EXPECT_THAT(message({.protected_words = {"two words"}}), HasSubstr("'two words': the pattern splits it"));
  EXPECT_THAT(message({.protected_words = {"17"}}),
              HasSubstr("'17': the pattern splits it; expected letters only, or one digit"));
  EXPECT_THAT(message({.added_tokens = {"a"}}), HasSubstr("single byte"));
  EXPECT_THAT(message({.added_tokens = {""}}), HasSubstr("expected some UTF-8 text"));
  EXPECT_THAT(message({.added_tokens = {"<x>", "<x>"}}), HasSubstr("twice"));
  EXPECT_THAT(message({.added_tokens = {"Oslo"}, .protected_words = {"Oslo"}}), HasSubstr("is an added token"));
}

}  // namespace
}  // namespace carnot
