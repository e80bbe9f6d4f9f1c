#include "carnot/core/text/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/tokenizer.h"
#include "testing/paths.h"
#include "testing/random_text.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json small_file() {
  const std::vector<std::string> texts = {"abab abab"};
  return json::parse(train_byte_level_bpe(texts, {.vocab_size = 300, .added_tokens = {"<|im_end|>"}}).value());
}

std::string message_of_text(const std::string& text) {
  const auto parsed = Tokenizer::parse(text, "t.json");
  return parsed.ok() ? "accepted" : parsed.error().message;
}
std::string message_of(const json& file) { return message_of_text(file.dump()); }

/// The message for `file` with the value at `pointer` replaced.
std::string message_with(const char* pointer, const json& value, json file = small_file()) {
  file[json::json_pointer(pointer)] = value;
  return message_of(file);
}

TEST(TokenizerFile, WhatIsNotJsonIsRefusedWithTheFilesName) {
  EXPECT_THAT(message_of_text(small_file().dump().substr(0, 500)), HasSubstr("t.json: not JSON"));
  EXPECT_THAT(message_of_text(""), HasSubstr("t.json: not JSON"));
  EXPECT_THAT(message_of_text("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(message_of_text(std::string(100000, '[')), HasSubstr("nests deeper"));
}

TEST(TokenizerFile, MissingAndBrokenMergesAreNamed) {
  json file = small_file();
  file["model"].erase("merges");
  EXPECT_THAT(message_of(file), HasSubstr("model.merges: expected an array of pairs, got null"));
  EXPECT_THAT(message_with("/model/merges/0", "a"), HasSubstr("model.merges[0]: expected \"a b\""));
  EXPECT_THAT(message_with("/model/merges/0", "a b c"), HasSubstr("model.merges[0]: expected \"a b\""));
  EXPECT_THAT(message_with("/model/merges/0", 5), HasSubstr("got 5"));
  EXPECT_THAT(message_with("/model/merges/0", "a nosuch"), HasSubstr("model.merges[0]: \"nosuch\" is not in"));
  EXPECT_EQ(message_with("/model/merges/0", {"a", "b"}), "accepted");
}

TEST(TokenizerFile, WhatIsNotComputedHereIsNamed) {
  EXPECT_THAT(message_with("/model/type", "WordPiece"), HasSubstr("model.type"));
  EXPECT_THAT(message_with("/model/dropout", 0.1), HasSubstr("model.dropout"));
  EXPECT_THAT(message_with("/model/end_of_word_suffix", "</w>"), HasSubstr("model.end_of_word_suffix"));
  EXPECT_THAT(message_with("/truncation", json::object()), HasSubstr("truncation: expected null"));
  EXPECT_THAT(message_with("/normalizer", {{"type", "Lowercase"}}), HasSubstr("normalizer.type"));
  EXPECT_THAT(message_with("/pre_tokenizer/pretokenizers/0/behavior", "Removed"),
              HasSubstr("pre_tokenizer.pretokenizers[0].behavior"));
  EXPECT_THAT(message_with("/pre_tokenizer/pretokenizers/0/invert", true), HasSubstr("[0].invert"));
  EXPECT_THAT(message_with("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a"), HasSubstr("pattern.Regex: '(a'"));
  EXPECT_THAT(message_with("/pre_tokenizer/pretokenizers/1/type", "Whitespace"), HasSubstr("pretokenizers[1].type"));
  EXPECT_THAT(message_with("/pre_tokenizer", nullptr), HasSubstr("pre_tokenizer.type"));
  EXPECT_THAT(message_with("/decoder", nullptr), HasSubstr("decoder.type"));
  EXPECT_THAT(message_with("/frobnicate", 1), HasSubstr("frobnicate: not known here"));
}

TEST(TokenizerFile, OfSentencePieceStepsThatAreNotComputedAreRefusedByName) {
  const std::string folder = source_path("tests/golden/tokenizer/");
  const json marked = json::parse(read_file(folder + "sentence_piece.json").value());
  const json metaspace = json::parse(read_file(folder + "metaspace.json").value());
  const json mark_decoder = {{"type", "Metaspace"}, {"replacement", "\u2581"}};
  EXPECT_THAT(message_with("/decoder", mark_decoder, marked), HasSubstr("decoder: expected Replace"));
  EXPECT_THAT(message_with("/decoder/decoders/2/type", "Strip", marked), HasSubstr("decoder: expected Replace"));
  EXPECT_THAT(message_with("/pre_tokenizer", metaspace["pre_tokenizer"], marked),
              HasSubstr("pre_tokenizer: expected null"));
  EXPECT_EQ(message_with("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"String", " "}}}}, marked), "accepted")
      << "Gemma's, which finds no blanks";
  EXPECT_THAT(message_with("/pre_tokenizer", nullptr, metaspace),
              HasSubstr("pre_tokenizer.type: expected \"Metaspace\""));
  EXPECT_THAT(message_with("/pre_tokenizer/split", true, metaspace), HasSubstr("pre_tokenizer.split"));
}

TEST(TokenizerFile, AllProblemsAreToldAtOnceButNotThousands) {
  json file = small_file();
  file["model"]["dropout"] = 0.5;
  file["decoder"] = nullptr;
  const std::string two = message_of(file);
  EXPECT_THAT(two, HasSubstr("decoder"));
  EXPECT_THAT(two, HasSubstr("dropout"));
  file["model"]["merges"] = std::vector<std::string>(5000, "no blanks?");
  EXPECT_LT(message_of(file).size(), 5000u);
  EXPECT_THAT(message_of(file), HasSubstr("more"));
}

/// As Llama 3's: the byte level, then a token before the text.
json begins_with(const std::string& token) {
  const json before = {{"SpecialToken", {{"id", token}, {"type_id", 0}}}},
             text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const json put = {{"type", "TemplateProcessing"}, {"single", {before, text}}, {"pair", {before, text, text}}};
  return {{"type", "Sequence"}, {"processors", {{{"type", "ByteLevel"}}, put}}};
}

TEST(TokenizerFile, PutsWhatItsPostProcessorPutsBeforeATextThatBeginsASequence) {
  json file = small_file();
  const auto plain = Tokenizer::parse(file.dump(), "plain").value();
  file["post_processor"] = begins_with("<|im_end|>");
  const auto begins = Tokenizer::parse(file.dump(), "begins").value();
  const TokenId first = begins.id_of("<|im_end|>").value();
  EXPECT_TRUE(plain.text_begin().empty());
  EXPECT_THAT(begins.text_begin(), ElementsAre(first));
  std::vector<TokenId> tokens = plain.encode("abab");
  EXPECT_EQ(plain.try_encode_from_begin("abab").value(), tokens);
  EXPECT_EQ(begins.encode("abab"), tokens) << "a part of a sequence";
  tokens.insert(tokens.begin(), first);
  EXPECT_EQ(begins.try_encode_from_begin("abab").value(), tokens);
  EXPECT_EQ(begins.try_encode_from_begin("<|im_end|>abab").value(), tokens) << "not twice";
  EXPECT_THAT(begins.try_encode_from_begin("").value(), ElementsAre(first));
  file["post_processor"] = {{"type", "BertProcessing"}, {"sep", {"</s>", 1}}, {"cls", {"<s>", 0}}};
  EXPECT_TRUE(Tokenizer::parse(file.dump(), "bert").value().text_begin().empty());
}

TEST(TokenizerFile, IdsAreChecked) {
  EXPECT_THAT(message_with("/model/vocab/a", -1), HasSubstr("model.vocab[\"a\"]: expected a token id"));
  EXPECT_THAT(message_with("/model/vocab/a", 1e30), HasSubstr("model.vocab[\"a\"]"));
  EXPECT_THAT(message_with("/model/vocab/a", std::uint64_t{1} << 63), HasSubstr("model.vocab[\"a\"]"));
  EXPECT_THAT(message_with("/model/vocab/a", 70), HasSubstr("already belongs to another token"));
  EXPECT_THAT(message_with("/added_tokens/0/id", 70), HasSubstr("added_tokens[0].id: 70 already"));
  EXPECT_THAT(message_with("/added_tokens/0/content", ""), HasSubstr("added_tokens[0].content"));
}

TEST(TokenizerFile, BytesThatAByteLevelVocabularyLacksAreNamedInOneWarning) {
  json file = small_file();
  for (const char* symbol : {"Ą", "ę", "Ĝ", "ô", "õ", "ö"}) file["model"]["vocab"].erase(symbol);
  std::vector<std::string> warnings;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) { warnings.push_back(message); });
  EXPECT_EQ(message_of(file), "accepted");
  file["model"]["unk_token"] = "a";
  EXPECT_EQ(message_of(file), "accepted");
  EXPECT_EQ(message_of(small_file()), "accepted");
  set_log_sink(before);
  const std::string bytes = "t.json: model.vocab lacks the symbols of the bytes 0x04, 0x19, 0x1C, 0xF4 to 0xF6; ";
  EXPECT_THAT(warnings, ElementsAre(bytes + "in a text they become nothing, as with transformers",
                                    bytes + "in a text they become the unknown token, as with transformers"));
  EXPECT_THAT(message_with("/model/unk_token", "<unk>", file),
              HasSubstr("model.unk_token: expected null or an entry of the vocabulary, got \"<unk>\""));
  EXPECT_EQ(message_with("/model/unk_token", "<unk>"), "accepted") << "nothing is unknown";
}

TEST(TokenizerFile, BytesThatAreNeededAreNotMissing) {
  json merged = small_file();
  merged["model"]["vocab"].erase("a");
  EXPECT_THAT(message_of(merged), HasSubstr("model.merges[0]: \"a\" is not in the vocabulary"));
  EXPECT_THAT(message_with("/model/vocab", {{"<|im_end|>", 0}}), HasSubstr("model.vocab: has none of the 256 byte"));
  json characters = json::parse(read_file(source_path("tests/golden/tokenizer/sentence_piece.json")).value());
  characters["model"]["vocab"].erase("<0x41>");
  EXPECT_THAT(message_of(characters), HasSubstr("lacks the byte symbol \"<0x41>\""));
}

TEST(TokenizerFile, NoMutationCrashesIt) {
  RandomStream random(9);
  const std::string text = small_file().dump();
  int accepted = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const auto parsed = Tokenizer::parse(testing::mutated(random, text), "mutated");
    if (!parsed.ok()) continue;
    ++accepted;
    parsed->decode(parsed->encode("abab <|im_end|> 12\n caf\u00E9 \xFF"));
  }
  EXPECT_GT(accepted, 5) << "mutations that are all refused at once test little";
}

class TokenizerFolder : public ::testing::Test {
 protected:
  TokenizerFolder() : folder_(fs::temp_directory_path() / ("carnot_tokenizer_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~TokenizerFolder() override { fs::remove_all(folder_); }

  void write(const char* name, const std::string& content) {
    ASSERT_TRUE(write_file_atomically(folder_ / name, content).ok());
  }
  void write_vocabulary_and_merges() {
    const json model = small_file()["model"];
    std::string merges = "#version: 0.2\n";
    for (const std::string merge : model["merges"]) merges += merge + "\n";
    json vocab = model["vocab"];
    vocab.erase("<|im_end|>");
    write("vocab.json", vocab.dump());
    write("merges.txt", merges);
  }

  fs::path folder_;
};

TEST_F(TokenizerFolder, WithTokenizerJsonIsReadFromIt) {
  write("tokenizer.json", small_file().dump());
  EXPECT_EQ(Tokenizer::load(folder_)->json(), small_file().dump());
}

TEST_F(TokenizerFolder, WithOlderFilesTakesAddedTokensFromTheConfig) {
  write_vocabulary_and_merges();
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"500": {"content": "<|x|>", "special": true}}})");
  const auto tokenizer = Tokenizer::load(folder_);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->id_of("<|x|>"), 500);
  EXPECT_EQ(tokenizer->encode("abab").size(), 1u);
}

TEST_F(TokenizerFolder, WithOlderFilesAloneHasNoAddedTokens) {
  write_vocabulary_and_merges();
  EXPECT_EQ(Tokenizer::load(folder_)->decode(Tokenizer::load(folder_)->encode("<|im_end|>")), "<|im_end|>");
  EXPECT_FALSE(Tokenizer::load(folder_)->id_of("<|im_end|>").has_value());
}

TEST_F(TokenizerFolder, WhatIsMissingOrWrongIsNamed) {
  EXPECT_THAT(Tokenizer::load(folder_).error().message, HasSubstr("vocab.json is missing"));
  write("vocab.json", "{}");
  EXPECT_THAT(Tokenizer::load(folder_).error().message, HasSubstr("merges.txt is missing"));
  write("merges.txt", "a b\n");
  EXPECT_THAT(Tokenizer::load(folder_).error().message, HasSubstr("has none of the 256 byte symbols"));
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"x": {}}})");
  EXPECT_THAT(Tokenizer::load(folder_).error().message, HasSubstr("added_tokens_decoder.x"));
  EXPECT_THAT(Tokenizer::load(folder_ / "nowhere").error().message, HasSubstr("nowhere"));
}

}  // namespace
}  // namespace carnot
