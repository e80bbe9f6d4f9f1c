#include "carnot/core/gguf/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/gguf/scored_merges.h"
#include "carnot/core/text/tokenizer.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string recorded(const std::string& name) { return read_file(recorded_path("gguf/" + name + ".gguf")).value(); }

/// A recorded file whose keys a test changes.
struct Changed {
  explicit Changed(const std::string& name) : bytes(recorded(name)), file(parse_gguf(bytes, name).value()) {}

  Result<GgufTokenizer> read() const { return read_gguf_tokenizer(file, 512, "x.gguf"); }
  std::string message() const {
    const auto made = read();
    return made ? "read" : made.error().message;
  }

  std::string bytes;
  GgufFile file;
};

GgufValue text(std::string_view value) { return {.kind = GgufKind::String, .bytes = value}; }

// Recorded by tools/golden/gguf_files.py and gguf_families.py.
TEST(GgufTokenizer, EncodesAsTheTokenizerThatTheFileWasMadeFrom) {
  json expected = json::parse(read_file(recorded_path("gguf/expected.json")).value());
  expected.update(json::parse(read_file(recorded_path("gguf/families.json")).value()));
  EXPECT_EQ(expected.size(), 18u);
  for (const auto& [name, one] : expected.items()) {
    SCOPED_TRACE(name);
    const auto made = Changed(name).read();
    ASSERT_TRUE(made.ok()) << made.error().message;
    const auto tokenizer = Tokenizer::parse(made->tokenizer_json, name);
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
    ASSERT_GT(one.at("texts").size(), 30u);
    for (const json& pair : one.at("texts"))
      EXPECT_EQ(tokenizer->encode(pair[0].get<std::string>()), pair[1].get<std::vector<TokenId>>()) << pair[0];
  }
}

TEST(GgufTokenizer, HasTheSpecialTokensAndTheTemplate) {
  const auto made = Changed("smollm").read();
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_THAT(made->notes, ElementsAre());
  EXPECT_EQ(made->bos_token, 0);
  EXPECT_THAT(made->eos_tokens, ElementsAre(1));
  EXPECT_EQ(json::parse(made->tokenizer_config_json), json({{"bos_token", "<s>"},
                                                            {"eos_token", "</s>"},
                                                            {"pad_token", "</s>"},
                                                            {"clean_up_tokenization_spaces", false},
                                                            {"model_max_length", 512},
                                                            {"tokenizer_class", "PreTrainedTokenizerFast"},
                                                            {"chat_template", "{{ bos_token }}"}}));
  EXPECT_TRUE(json::parse(made->tokenizer_json)["post_processor"].is_null());
  EXPECT_EQ(json::parse(Changed("llama3").read()->tokenizer_json)["post_processor"]["type"], "TemplateProcessing")
      << "Llama 3's texts begin with bos";
}

TEST(GgufTokenizer, WithUnusedTokensAtTheEndIsWithoutThem) {
  const auto made = Changed("qwen2").read();
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_EQ(made->num_tokens, 320);
  EXPECT_FALSE(Tokenizer::parse(made->tokenizer_json, "x")->has(319));
}

TEST(GgufTokenizer, OfAnUnknownKindIsRefused) {
  Changed other("smollm");
  other.file.values["tokenizer.ggml.pre"] = text("viking");
  EXPECT_THAT(other.message(),
              HasSubstr("tokenizer.ggml.pre: the pre-tokenizer \"viking\" is not known; expected one of "
                        "default, gpt-2, smollm, refact, starcoder, olmo, qwen2, qwen35, llama-bpe, lfm2, dbrx, "
                        "smaug-bpe, gpt-4o, tekken"));
  other.file.values["tokenizer.ggml.model"] = text("t5");
  EXPECT_THAT(other.message(), HasSubstr("tokenizer.ggml.model: expected \"gpt2\" (byte-level BPE) or \"llama\""));
  other.file.values.erase("tokenizer.ggml.model");
  EXPECT_THAT(other.message(), HasSubstr("tokenizer.ggml.model: is missing"));
}

TEST(GgufTokenizer, SaysWhatIsGuessedOrLeftOut) {
  Changed other("gpt2");
  other.file.values["tokenizer.ggml.pre"] = text("default");
  other.file.values["tokenizer.chat_template.tools"] = text("{{ x }}");
  const std::uint32_t far = 9999;
  other.file.values["tokenizer.ggml.eot_token_id"] = {.kind = GgufKind::Uint32,
                                                      .bytes = {reinterpret_cast<const char*>(&far), 4}};
  const auto made = other.read();
  ASSERT_TRUE(made.ok()) << made.error().message;
  EXPECT_THAT(made->notes, ElementsAre(HasSubstr("GPT-2's is taken"), HasSubstr("eot_token_id 9999 names no token"),
                                       HasSubstr("tokenizer.chat_template.tools: only the template")));
}

TEST(GgufTokenizer, WithDamagedListsIsRefused) {
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.merges"}) {
    Changed other("smollm");
    other.file.values.erase(key);
    EXPECT_THAT(other.message(), HasSubstr(std::string(key) + ": is missing"));
  }
  Changed other("smollm"), pieces("sentence_piece");
  other.file.values["tokenizer.ggml.token_type"] = pieces.file.values["tokenizer.ggml.token_type"];
  EXPECT_THAT(other.message(), HasSubstr("elements for 700 tokens"));
  pieces.file.values.erase("tokenizer.ggml.scores");
  EXPECT_THAT(pieces.message(), HasSubstr("tokenizer.ggml.scores: is missing"));
  other.file.values["tokenizer.ggml.token_type"] = other.file.values["tokenizer.ggml.merges"];
  EXPECT_THAT(other.message(), HasSubstr("expected an array of integers"));
}

TEST(ScoredMerges, AreByDescendingScoreThenByTheLongerLeftPart) {
  const std::vector<ScoredToken> tokens{{"a", -9}, {"b", -9}, {"ab", -1}, {"bb", -2}, {"abb", -1}};
  EXPECT_THAT(merges_of_scores(tokens).value(),
              ElementsAre(MergeParts{"ab", "b"}, MergeParts{"a", "bb"}, MergeParts{"a", "b"}, MergeParts{"b", "b"}));
  const std::string longest(300, 'x');
  EXPECT_THAT(merges_of_scores(std::vector<ScoredToken>{{longest, 0}}).error().message, HasSubstr("at most 256"));
}

}  // namespace
}  // namespace carnot
