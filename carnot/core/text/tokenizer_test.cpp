#include "carnot/core/text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/byte_alphabet.h"
#include "carnot/core/text/split_pattern.h"
#include "reference/byte_pair_merging.h"
#include "testing/qwen2_tokenizer.h"
#include "testing/random_text.h"

namespace carnot {
namespace {

using nlohmann::json;
using Ids = std::vector<TokenId>;

class QwensTokenizer : public testing::Qwen2Tokenizer {};
CARNOT_WITH_EACH_QWEN2(QwensTokenizer);

/// A tokenizer.json of the 256 bytes (ids as bytes) and a few merges, to be changed by a test.
json small_tokenizer_file() {
  const std::vector<std::string> texts = {"aaab aaab hello hello"};
  json file = json::parse(train_byte_level_bpe(texts, {.vocab_size = 262}).value());
  file["model"]["ignore_merges"] = false;
  return file;
}

Tokenizer parse(const json& file) { return Tokenizer::parse(file.dump(), "test").value(); }

json added(TokenId id, const std::string& content) {
  return {{"id", id}, {"content", content}, {"special", false}, {"normalized", false}};
}

TEST_P(QwensTokenizer, MatchesTheRecordedVectors) {
  const auto text = read_file(folder() + "/vectors.jsonl");
  ASSERT_TRUE(text.ok());
  int count = 0;
  for (const auto line : split_lines(*text)) {
    const auto vector = json::parse(line);
    EXPECT_EQ(qwen().encode(vector.at("text").get<std::string>()), vector.at("ids").get<Ids>()) << line;
    ++count;
  }
  EXPECT_EQ(count, 23);
}

/// `text` without the bytes of `lost`.
std::string without(std::string_view text, std::string_view lost) {
  std::string kept;
  for (const char byte : text)
    if (lost.find(byte) == std::string_view::npos) kept += byte;
  return kept;
}

TEST(Tokenizer, KnowsWhichPartOfATextEachTokenSpells) {
  const std::string lost = "\x04q\xF0";
  json file = small_tokenizer_file();
  for (const char byte : lost) file["model"]["vocab"].erase(bytes_to_symbols(std::string(1, byte)));
  json taking = added(300, "<end>");
  taking["lstrip"] = taking["rstrip"] = true;
  file["added_tokens"] = {taking};
  json with_unknown = file;
  with_unknown["model"]["unk_token"] = "z";
  const Tokenizer bare = parse(file), marking = parse(with_unknown);
  const std::vector<std::string> parts = {"aaab", "hello", " ", "\n", "q", "\x04", "qq", "🦙", "<end>", "z"};
  RandomStream random(3);
  for (int trial = 0; trial < 300; ++trial) {
    std::string text;
    for (std::uint64_t i = 0; i < random.below(12); ++i) text += parts[random.below(parts.size())];
    for (const Tokenizer* tokenizer : {&bare, &marking}) {
      std::size_t offset = 0;
      for (const TokenId id : tokenizer->encode(text)) {
        const TextRange place = tokenizer->place_of(id, text, offset);
        ASSERT_GE(place.begin, offset);
        const std::string spelt = text.substr(place.begin, place.end - place.begin);
        const bool unknown = tokenizer == &marking && tokenizer->bytes_of(id) == "z" && spelt != "z";
        EXPECT_EQ(without(spelt, lost), unknown ? "" : tokenizer->bytes_of(id)) << text;
        EXPECT_EQ(unknown ? spelt.size() : 1u, 1u) << text;
        EXPECT_EQ(trim(without(text.substr(offset, place.begin - offset), lost)), "") << text;
        offset = place.end;
      }
      EXPECT_EQ(trim(without(text.substr(offset), lost)), "") << text;
    }
  }
}

TEST(Tokenizer, SaysSoWhereItsPatternBacktracksWithoutEnd) {
  json file = small_tokenizer_file();
  json& steps = file["pre_tokenizer"]["pretokenizers"];
  ASSERT_EQ(steps[0]["type"], "Split");
  steps[0]["pattern"]["Regex"] = "(a+)+$";
  const auto ids = parse(file).try_encode(std::string(60, 'a') + "c");
  ASSERT_FALSE(ids.ok());
  EXPECT_NE(ids.error().message.find("the split pattern takes more than"), std::string::npos);
  EXPECT_EQ(parse(file).decode(parse(file).encode("aaaa")), "aaaa");
}

TEST(Tokenizer, ManyPreTokenisersWithinEachOtherAreRefused) {
  json file = small_tokenizer_file();
  json& steps = file["pre_tokenizer"]["pretokenizers"];
  const json step = steps[0];
  for (int i = 0; i < 100'000; ++i) steps.push_back(step);
  const auto tokenizer = Tokenizer::parse(file.dump(), "test");
  ASSERT_FALSE(tokenizer.ok());
  EXPECT_NE(tokenizer.error().message.find("expected an array of at most 16 parts, got an array of size 100002"),
            std::string::npos);
}

TEST_P(QwensTokenizer, SpellsOutControlTokensInContentsAloneAndAllOtherAddedTokensAsEver) {
  const std::string text = "a<|im_end|>b<tool_call><|im_end|>";
  const std::string content = "a<|im_end|>b";
  const TextRange range{.end = content.size()};
  const TokenId end = *qwen().id_of("<|im_end|>"), call = *qwen().id_of("<tool_call>");
  const Ids ids = qwen().encode(text, TextBefore::Nothing, {&range, 1});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), end), 1);
  EXPECT_EQ(ids.back(), end);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), call), 1);
  EXPECT_EQ(qwen().decode(ids), text);
  // One that begins in the contents and ends after them is not one either.
  const TextRange half{.end = 3};
  const Ids straddling = qwen().encode(text, TextBefore::Nothing, {&half, 1});
  EXPECT_EQ(std::count(straddling.begin(), straddling.end(), end), 1);
  EXPECT_EQ(qwen().encode_content("plain text"), qwen().encode("plain text"));
}

TEST(Tokenizer, SpellsOutControlTokensThatAreLookedForAfterNormalisation) {
  json file = small_tokenizer_file();
  file["normalizer"] = {{"type", "NFC"}};
  json special = added(300, "<stop>");
  special["special"] = special["normalized"] = true;
  file["added_tokens"] = json::array({special});
  const Tokenizer tokenizer = parse(file);
  // e and a combining accent are one character after normalisation: places in the text shift.
  const std::string content = "e\u0301 <stop> e\u0301";
  const std::string text = "<stop>" + content + "<stop>";
  const TextRange range{.begin = 6, .end = 6 + content.size()};
  const Ids ids = tokenizer.encode(text, TextBefore::Nothing, {&range, 1});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 300), 2);
  EXPECT_EQ(ids.front(), 300);
  EXPECT_EQ(ids.back(), 300);
  const Ids alone = tokenizer.encode_content(text);
  EXPECT_EQ(std::count(alone.begin(), alone.end(), 300), 0);
}

TEST_P(QwensTokenizer, KnowsTheAddedTokens) {
  EXPECT_EQ(qwen().encode("a<|im_end|>\n"), (Ids{64, first_added() + 2, 198}));
  EXPECT_EQ(qwen().id_of("<|im_start|>"), first_added() + 1);
  EXPECT_TRUE(qwen().is_added(first_added() + 1));
  EXPECT_FALSE(qwen().is_added(64));
  EXPECT_FALSE(qwen().id_of("<|no such token|>").has_value());
  EXPECT_EQ(qwen().vocab_size(), first_added() + 22);
}

TEST_P(QwensTokenizer, DecodingGivesTheComposedTextBack) {
  RandomStream random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::string text = testing::random_unicode(random, static_cast<int>(random.below(40)));
    ASSERT_EQ(qwen().decode(qwen().encode(text)), compose(text)) << bytes_to_symbols(text);
  }
}

TEST_P(QwensTokenizer, BytesThatAreNoTextComeBackToo) {
  RandomStream random(6);
  for (int trial = 0; trial < 1000; ++trial) {
    const std::string bytes = testing::random_bytes(random, static_cast<int>(random.below(30)));
    ASSERT_EQ(qwen().decode(qwen().encode(bytes)), qwen().normalize(bytes));
  }
  EXPECT_EQ(qwen().decode(qwen().encode("a\xFF\xC3z")), "a\xFF\xC3z");
}

TEST(Tokenizer, MatchesTheDefinitionOfMergingOnRandomText) {
  const auto texts = std::vector<std::string>{
      "the cat sat on the mat and the dog sat on the log while the cat and the dog ate the hat",
      "banana bandana banana bandana cabana 121212 нещо нещо 你好你好"};
  json file = json::parse(train_byte_level_bpe(texts, {.vocab_size = 330}).value());
  file["model"]["ignore_merges"] = false;
  const Tokenizer tokenizer = parse(file);
  std::vector<std::pair<std::string, std::string>> merges;
  for (const std::string merge : file["model"]["merges"])
    merges.emplace_back(merge.substr(0, merge.find(' ')), merge.substr(merge.find(' ') + 1));
  const auto pattern = SplitPattern::compile(kQwen2Pattern).value();
  SplitScratch scratch;

  RandomStream random(7);
  const std::string letters = "abdnthe sotcg12 ";
  for (int trial = 0; trial < 500; ++trial) {
    std::string text;
    for (int i = 0; i < 60; ++i) text += letters[random.below(letters.size())];
    if (trial % 5 == 0) text += texts[1];
    std::vector<std::string> expected;
    const auto expect_piece = [&](std::string_view piece) {
      std::vector<std::string> symbols;
      for (const char byte : piece) symbols.push_back(bytes_to_symbols(std::string(1, byte)));
      for (auto& token : reference::merge_pairs(symbols, merges)) expected.push_back(token);
    };
    ASSERT_TRUE(pattern.for_each_piece(text, scratch, expect_piece).ok());
    std::vector<std::string> tokens;
    for (const TokenId id : tokenizer.encode(text)) tokens.push_back(bytes_to_symbols(tokenizer.bytes_of(id)));
    ASSERT_EQ(tokens, expected) << text;
  }
}

TEST_P(QwensTokenizer, TwoThreadsEncodeAsOne) {
  const std::string text = "Two threads share one tokenizer: нещо на Български, ½ café 12345 lowercasing unhappiness";
  const Ids expected = qwen().encode(text);
  bool same[2] = {true, true};
  std::vector<std::thread> threads;
  for (bool& mine : same)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) mine = mine && qwen().encode(text) == expected;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(same[0] && same[1]);
}

TEST(AddedTokens, TheLongestAtTheLeftmostPlaceWins) {
  json file = small_tokenizer_file();
  file["added_tokens"] = {added(300, "<a"), added(301, "<a>"), added(302, "a>b")};
  EXPECT_EQ(parse(file).encode("<a>b<ab"), (Ids{301, 'b', 300, 'b'}));
}

TEST(AddedTokens, TakeTheBlanksTheyAreToldTo) {
  json file = small_tokenizer_file();
  file["added_tokens"] = {added(300, "<l>"), added(301, "<r>")};
  file["added_tokens"][0]["lstrip"] = true;
  file["added_tokens"][1]["rstrip"] = true;
  EXPECT_EQ(parse(file).encode("x \t<l> y"), (Ids{'x', 300, ' ', 'y'}));
  EXPECT_EQ(parse(file).encode("x <r>\u00A0\n y"), (Ids{'x', ' ', 301, 'y'}));
  EXPECT_EQ(parse(file).encode("<r>  <l>"), (Ids{301, 300}));
}

TEST(AddedTokens, ASingleWordIsNotFoundWithinAnother) {
  json file = small_tokenizer_file();
  file["added_tokens"] = {added(300, "cat")};
  file["added_tokens"][0]["single_word"] = true;
  const Tokenizer tokenizer = parse(file);
  EXPECT_EQ(tokenizer.encode("(cat)"), (Ids{'(', 300, ')'}));
  EXPECT_EQ(tokenizer.encode("cats"), (Ids{'c', 'a', 't', 's'}));
  EXPECT_EQ(tokenizer.encode("\u00E9cat"), (Ids{0xC3, 0xA9, 'c', 'a', 't'}));
}

TEST(AddedTokens, ANormalizedOneIsFoundInComposedText) {
  json file = small_tokenizer_file();
  file["added_tokens"] = {added(300, "e\u0301!"), added(301, "o\u0301!")};
  file["added_tokens"][0]["normalized"] = true;
  EXPECT_EQ(parse(file).encode("\u00E9!e\u0301!"), (Ids{300, 300}));
  EXPECT_EQ(parse(file).encode("\u00F3!"), (Ids{0xC3, 0xB3, '!'})) << "this one is looked for in the raw text";
  EXPECT_EQ(parse(file).encode("o\u0301!"), (Ids{301}));
}

TEST(Tokenizer, IgnoreMergesTakesAWholePieceFromTheVocabulary) {
  json file = small_tokenizer_file();
  file["model"]["vocab"]["zebra"] = 400;
  EXPECT_EQ(parse(file).encode("zebra"), (Ids{'z', 'e', 'b', 'r', 'a'}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(parse(file).encode("zebra"), (Ids{400}));
  EXPECT_EQ(parse(file).encode("zebras"), (Ids{'z', 'e', 'b', 'r', 'a', 's'}));
}

TEST(Tokenizer, DigitsAndPrefixSpaceAreSteps) {
  json file = small_tokenizer_file();
  file["model"]["ignore_merges"] = true;
  file["model"]["vocab"]["12"] = 400;
  file["model"]["vocab"]["Ġ12"] = 401;
  const auto with = [&](const json& pre_tokenizer) {
    file["pre_tokenizer"] = pre_tokenizer;
    return parse(file);
  };
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  EXPECT_EQ(with(byte_level).encode("12 12"), (Ids{400, 401}));
  EXPECT_EQ(with({{"type", "Sequence"}, {"pretokenizers", {digits, byte_level}}}).encode("12"), (Ids{'1', '2'}));
  EXPECT_EQ(with({{"type", "ByteLevel"}, {"add_prefix_space", true}}).encode("12"), (Ids{401}));
}

TEST(Tokenizer, AnUnknownIdIsABug) {
  json file = small_tokenizer_file();
  file["added_tokens"] = {added(300, "<a>")};
  const Tokenizer tokenizer = parse(file);
  EXPECT_FALSE(tokenizer.has(280));
  EXPECT_THROW(tokenizer.bytes_of(280), CheckError);
  EXPECT_THROW(tokenizer.bytes_of(-1), CheckError);
  EXPECT_THROW(tokenizer.bytes_of(301), CheckError);
}

TEST_P(QwensTokenizer, ItsJsonGivesTheSameTokenizer) {
  const Tokenizer again = Tokenizer::parse(qwen().json(), "again").value();
  const std::string text = "Hello <|im_end|> 42 नमस्ते";
  EXPECT_EQ(again.encode(text), qwen().encode(text));
}

TEST_P(QwensTokenizer, IsDecodedPieceByPieceWithoutSplittingACharacter) {
  RandomStream random(8);
  for (int trial = 0; trial < 300; ++trial) {
    const Ids ids = qwen().encode(testing::random_unicode(random, 20));
    StreamingDecoder decoder(qwen());
    std::string text;
    for (const TokenId id : ids) {
      const std::string part = decoder.push(id);
      ASSERT_EQ(valid_prefix(part), part.size());
      text += part;
    }
    EXPECT_EQ(decoder.flush(), "");
    EXPECT_EQ(text, qwen().decode(ids));
  }
}

TEST(StreamingDecoder, HandsOutWhatNeverBecomesACharacter) {
  const Tokenizer tokenizer = parse(small_tokenizer_file());
  StreamingDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.push(0x9F), "");
  EXPECT_EQ(decoder.push('a'),
            "\xF0\x9F"
            "a");
  EXPECT_EQ(decoder.push(0xE4), "");
  EXPECT_EQ(decoder.flush(), "\xE4");
  EXPECT_EQ(decoder.flush(), "");
}

}  // namespace
}  // namespace carnot
