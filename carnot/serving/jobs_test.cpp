#include "carnot/serving/jobs.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/random.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "testing/chat_templates.h"
#include "testing/paths.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using nlohmann::json;
using testing::small_tokenizer;

LoadedModel loaded_model() {
  LoadedModel loaded;
  loaded.tokenizer = std::make_unique<Tokenizer>(Tokenizer::parse(small_tokenizer().json(), "small").value());
  loaded.model = std::make_unique<Model>(ModelConfig{.vocab_size = small_tokenizer().vocab_size(),
                                                     .hidden_size = 32,
                                                     .intermediate_size = 48,
                                                     .num_layers = 2,
                                                     .num_heads = 4,
                                                     .num_kv_heads = 2,
                                                     .head_dim = 8},
                                         3, at::TensorOptions().dtype(at::kFloat), 0.4);
  return loaded;
}

std::vector<InputLine> lines_of(const std::vector<std::vector<TokenId>>& sequences) {
  std::vector<InputLine> lines;
  for (const auto& sequence : sequences) lines.push_back({.tokens = sequence});
  return lines;
}

JobControl control_of(std::ostream& out) {
  return {.out = out, .shown = [](std::string_view text) { return std::string(text); }};
}

std::vector<json> json_lines(const std::string& text) {
  std::vector<json> lines;
  for (const auto line : split_lines(text)) lines.push_back(json::parse(line));
  return lines;
}

std::vector<std::int64_t> to_longs(const at::Tensor& values) {
  const at::Tensor longs = values.to(at::kLong).contiguous();
  return {longs.const_data_ptr<std::int64_t>(), longs.const_data_ptr<std::int64_t>() + longs.numel()};
}

std::vector<json> scored(ScoreJob job) {
  std::ostringstream out;
  EXPECT_EQ(run_score(job, control_of(out)), RunEnd::Complete);
  return json_lines(out.str());
}

TEST(GenerateJob, WritesJsonWhoseLogProbabilitiesScoreRepeatsBitForBit) {
  GenerateJob job{.model = loaded_model(), .prompts = lines_of({{5, 6, 7}, {9}}), .json = true};
  job.prompts[1].id = "{\"k\":1}";
  job.options = {.sampling = {.temperature = 1}, .samples = 2, .max_tokens = 8, .seed = 4};
  std::ostringstream out;
  EXPECT_EQ(run_generate(job, control_of(out)), RunEnd::Complete);
  const auto lines = json_lines(out.str());
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_FALSE(lines[0].contains("id"));
  EXPECT_EQ(lines[2].at("id"), json({{"k", 1}}));
  EXPECT_EQ(lines[3].at("prompt"), 1);
  EXPECT_EQ(lines[3].at("sample"), 1);

  ScoreJob score{.model = loaded_model()};
  for (const json& line : lines) {
    auto ids = line.at("prompt_ids").get<std::vector<TokenId>>();
    for (const json& id : line.at("ids")) ids.push_back(id.get<TokenId>());
    score.sequences.push_back({.id = "\"same\"", .tokens = ids});
  }
  score.batch_tokens = 30;
  const auto scores = scored(std::move(score));
  ASSERT_EQ(scores.size(), 4u);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].at("finish_reason"), "length");
    EXPECT_TRUE(lines[i].at("stop").is_null());
    const json& log_probs = lines[i].at("logp");
    ASSERT_EQ(log_probs.size(), 8u);
    const std::size_t prompt = lines[i].at("prompt_ids").size();
    double sum = 0, scored_sum = 0;
    for (std::size_t t = 0; t < log_probs.size(); ++t) {
      sum += log_probs[t].get<double>();
      scored_sum += scores[i].at("logp")[prompt + t].get<double>();
      EXPECT_EQ(lines[i].at("entropy")[t], scores[i].at("entropy")[prompt + t]);
    }
    EXPECT_EQ(sum, scored_sum);
    EXPECT_EQ(scores[i].at("id"), "same");
  }
}

/// A Hugging Face folder of the small model, removed at the end.
class Folder {
 public:
  explicit Folder(const std::string& generation_config)
      : path_(std::filesystem::temp_directory_path() / "carnot_jobs_test") {
    std::filesystem::create_directories(path_);
    const LoadedModel model = loaded_model();
    EXPECT_TRUE(write_file_atomically(path_ / "tokenizer.json", model.tokenizer->json()).ok());
    EXPECT_TRUE(write_file_atomically(path_ / "config.json", model_config_json(model.model->config(), "float32")).ok());
    EXPECT_TRUE(write_safetensors(path_ / "model.safetensors", model.model->parameters()).ok());
    if (generation_config.empty()) return;
    EXPECT_TRUE(write_file_atomically(path_ / "generation_config.json", generation_config).ok());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

GenerateJob prepared(const Folder& folder, GenerateRequest request) {
  request.model = {.path = folder.path(), .threads = 1};
  request.prompts = {"task"};
  std::istringstream in;
  auto job = prepare_generate(request, in);
  EXPECT_TRUE(job.ok()) << job.error().message;
  return std::move(job).value();
}

TEST(GenerateJob, SamplesAsGenerationConfigSaysUnlessFlagsSayOtherwise) {
  const Folder folder(R"({"do_sample": true, "temperature": 0.7, "top_p": 0.8, "top_k": 20, "eos_token_id": [2, 5]})");
  const GenerateJob job = prepared(folder, {});
  EXPECT_EQ(job.options.sampling.temperature, 0.7);
  EXPECT_EQ(job.options.sampling.top_p, 0.8);
  EXPECT_EQ(job.options.sampling.top_k, 20);
  EXPECT_EQ(std::ranges::count(job.options.stop_tokens, 2), 1) << "the chat format's own, named again";
  EXPECT_EQ(std::ranges::count(job.options.stop_tokens, 5), 1);
  const GenerateJob other = prepared(folder, {.temperature = 0, .top_k = 3});
  EXPECT_EQ(other.options.sampling.temperature, 0);
  EXPECT_EQ(other.options.sampling.top_p, 0.8);
  EXPECT_EQ(other.options.sampling.top_k, 3);
}

TEST(GenerateJob, SaysThatAChatTemplateWhichCannotBeRenderedIsNotApplied) {
  testing::use_source_python();
  const Folder folder("");
  EXPECT_TRUE(write_file_atomically(folder.path() / "chat_template.jinja", "{{ something(of, its, own) }}").ok());
  std::vector<std::string> messages;
  const LogSink before =
      set_log_sink([&messages](LogLevel, const std::string& message) { messages.push_back(message); });
  const GenerateJob chat = prepared(folder, {});
  const GenerateJob raw = prepared(folder, {.raw = true});
  set_log_sink(before);
  EXPECT_EQ(chat.prompts[0].tokens, raw.prompts[0].tokens);
  ASSERT_EQ(messages.size(), 1u) << "one with the chat format left out unasked, none with --raw";
  EXPECT_NE(messages[0].find("the model's chat template cannot be used: "), std::string::npos) << messages[0];
  EXPECT_NE(messages[0].find("'something' is undefined"), std::string::npos) << messages[0];
}

TEST(GenerateJob, RendersAChatTemplateOfNoKnownFormat) {
  testing::use_source_python();
  const Folder folder("");
  EXPECT_TRUE(write_file_atomically(folder.path() / "chat_template.jinja",
                                    "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
                                    "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}")
                  .ok());
  const GenerateJob job = prepared(folder, {});
  const GenerateJob raw = prepared(folder, {.raw = true});
  const Tokenizer& tokenizer = *job.model.tokenizer;
  EXPECT_EQ(tokenizer.decode(job.prompts[0].tokens),
            "user: " + tokenizer.decode(raw.prompts[0].tokens) + "\nassistant:");
}

TEST(ScoreJob, TakesIdsWithoutATokenizerAndRefusesTexts) {
  const Folder folder("");
  std::filesystem::remove(folder.path() / "tokenizer.json");
  const ScoreRequest request{.model = {.path = folder.path(), .threads = 1}};
  std::istringstream ids(R"({"ids": [5, 6, 7]})"), text(R"({"text": "task"})");
  const auto job = prepare_score(request, ids);
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->sequences[0].tokens.size(), 3u);
  const auto refused = prepare_score(request, text);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("standard input:1: text: "), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("expected tokenizer.json"), std::string::npos) << refused.error().message;
}

TEST(GenerateJob, TakesTheMostLikelyTokenWhereNothingSaysToSample) {
  EXPECT_EQ(prepared(Folder(""), {}).options.sampling.temperature, 0);
  const GenerateJob job = prepared(Folder(R"({"temperature": 0.7, "top_k": 20})"), {.temperature = 0.5});
  EXPECT_EQ(job.options.sampling.temperature, 0.5);
  EXPECT_EQ(job.options.sampling.top_k, 0) << "without do_sample its settings are not meant";
}

TEST(GenerateJob, StreamsOneTextAndPutsHeadingsOverSeveral) {
  GenerateJob job{.model = loaded_model(), .prompts = lines_of({{5, 6, 7}})};
  job.options.max_tokens = 6;
  std::ostringstream alone, shown, several;
  EXPECT_EQ(run_generate(job, control_of(alone)), RunEnd::Complete);
  JobControl bracketed = control_of(shown);
  bracketed.shown = [](std::string_view text) { return "[" + std::string(text) + "]"; };
  run_generate(job, bracketed);
  const std::string pieces = shown.str();
  EXPECT_GT(std::ranges::count(pieces, '['), 1) << "in pieces";

  job.prompts.push_back({.tokens = {9}});
  EXPECT_EQ(run_generate(job, control_of(several)), RunEnd::Complete);
  EXPECT_TRUE(several.str().starts_with("-------- prompt 1\n" + alone.str() + "-------- prompt 2\n")) << several.str();
}

TEST(GenerateJob, EndsWhenItIsStoppedOrNobodyReads) {
  GenerateJob job{.model = loaded_model(), .prompts = lines_of({{5}, {6}, {7}}), .json = true};
  job.options.max_tokens = 1000;
  std::ostringstream out;
  JobControl stopped = control_of(out);
  int asked = 0;
  stopped.stop_requested = [&] { return ++asked > 3; };
  EXPECT_EQ(run_generate(job, stopped), RunEnd::Interrupted);
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(out.str(), "");

  std::ostringstream broken;
  broken.setstate(std::ios::badbit);
  job.options.max_tokens = 2;
  EXPECT_EQ(run_generate(job, control_of(broken)), RunEnd::Complete);
}

TEST(ScoreJob, HasOneEntryATokenAndNullForTheFirst) {
  const auto lines = scored({.model = loaded_model(), .sequences = lines_of({{5, 6, 7, 8}, {9}, {10, 11}})});
  ASSERT_EQ(lines.size(), 3u);
  for (const char* name : {"logp", "entropy", "logsumexp"}) {
    ASSERT_EQ(lines[0].at(name).size(), 4u);
    EXPECT_TRUE(lines[0].at(name)[0].is_null());
    const double sum =
        lines[0].at(name)[1].get<double>() + lines[0].at(name)[2].get<double>() + lines[0].at(name)[3].get<double>();
    EXPECT_DOUBLE_EQ(lines[0].at(std::string("mean_") + name).get<double>(), sum / 3);
    EXPECT_EQ(lines[1].at(name), json::array({nullptr}));
    EXPECT_TRUE(lines[1].at(std::string("mean_") + name).is_null());
  }
  EXPECT_EQ(lines[2].at("index"), 2);
  EXPECT_EQ(lines[2].at("ids"), json({10, 11}));
}

TEST(ScoreJob, ManyAtATimeEqualOneByOneBitForBit) {
  RandomStream random(5);
  std::vector<std::vector<TokenId>> sequences(12);
  for (auto& sequence : sequences)
    for (auto n = 1 + random.below(40); n > 0; --n) sequence.push_back(static_cast<TokenId>(random.below(250)));
  const auto together =
      scored({.model = loaded_model(), .sequences = lines_of(sequences), .temperature = 0.7, .batch_tokens = 100});
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto alone =
        scored({.model = loaded_model(), .sequences = lines_of({sequences[i]}), .temperature = 0.7}).front();
    for (const char* name : {"logp", "entropy", "logsumexp", "mean_logp"})
      EXPECT_EQ(alone.at(name), together[i].at(name));
  }
}

// What transformers computes on its checkpoints (tools/golden/transformers_parity.py).
TEST(ScoreJob, EqualsTransformersOnItsCheckpoint) {
  const std::string folder = source_path("tests/golden/transformers/qwen2");
  auto model = load_model(folder, at::TensorOptions().dtype(at::kFloat));
  ASSERT_TRUE(model.ok()) << model.error().message;
  ScoreJob job;
  job.model.model = std::make_unique<Model>(std::move(model).value());
  std::map<std::string, at::Tensor> expected;
  const auto file = read_safetensors(folder + "/expected.safetensors");
  for (const NamedTensor& named : file.value().tensors) expected[named.name] = named.tensor;
  const auto offsets = to_longs(expected.at("offsets")), tokens = to_longs(expected.at("tokens"));
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i)
    job.sequences.push_back({.tokens = {tokens.begin() + offsets[i], tokens.begin() + offsets[i + 1]}});
  const auto lines = scored(std::move(job));
  std::int64_t row = 0;
  for (const json& line : lines) {
    for (std::size_t t = 1; t < line.at("ids").size(); ++t, ++row)
      for (const auto& [ours, theirs] :
           {std::pair{"logp", "logprob"}, {"entropy", "entropy"}, {"logsumexp", "logsumexp"}})
        EXPECT_NEAR(line.at(ours)[t].get<double>(), expected.at(theirs)[row].item<double>(), 2e-5);
  }
  EXPECT_EQ(row, expected.at("logprob").numel());
}

}  // namespace
}  // namespace carnot
