#include "carnot/serving/text_batch.h"

#include <gtest/gtest.h>

#include <bit>

#include "carnot/core/base/check.h"
#include "testing/small_model.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using testing::small_tokenizer;

const Model& batch_model(const std::string& family = "qwen2") {
  static const std::map<std::string, Model> models{
      {"qwen2", testing::small_model({.max_positions = 256})},
      {"qwen3_5_text", testing::small_model({.family = "qwen3_5_text", .max_positions = 256})}};
  return models.at(family);
}

TextJob job_of(TextJobId id) {
  return {.prompt = std::vector<TokenId>(static_cast<std::size_t>(3 + 5 * id), static_cast<TokenId>(10 + id)),
          .samples = id % 3 == 0 ? 2 : 1,
          .sampling = {.temperature = 0.9},
          .key = {.seed = 100 + static_cast<std::uint64_t>(id)},
          .max_tokens = static_cast<int>(4 + 3 * id)};
}

/// Tokens, with the bits of their log-probabilities, of every text.
using Texts = std::map<std::pair<TextJobId, int>, std::vector<std::pair<TokenId, std::uint32_t>>>;

void take(const std::vector<TextStep>& steps, Texts& texts) {
  for (const TextStep& step : steps)
    texts[{step.job, step.sample}].emplace_back(step.draw.token, std::bit_cast<std::uint32_t>(step.draw.log_prob));
}

Texts alone(const Model& model, TextJobId id) {
  TextBatch batch(model, small_tokenizer(), {.texts = 1, .cache_tokens = 64});
  batch.add(id, job_of(id));
  Texts texts;
  while (batch.has_work()) take(batch.step(), texts);
  return texts;
}

class TextBatchOfFamily : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Families, TextBatchOfFamily, ::testing::Values("qwen2", "qwen3_5_text"));

TEST_P(TextBatchOfFamily, JobsThatJoinAndLeaveAtAnyTimeSayWhatTheySayAlone) {
  for (const int cache_tokens : {64, 1000}) {  // with and without evictions
    TextBatch batch(batch_model(GetParam()), small_tokenizer(), {.texts = 4, .cache_tokens = cache_tokens});
    Texts texts;
    TextJobId added = 0;
    for (int step = 0; added < 8 || batch.has_work(); ++step) {
      if (step % 2 == 0 && added < 8) batch.add(added, job_of(added)), ++added;
      if (step == 9) batch.cancel(3);
      take(batch.step(), texts);
    }
    for (TextJobId id = 0; id < 8; ++id) {
      if (id == 3) continue;
      for (const auto& [name, text] : alone(batch_model(GetParam()), id))
        EXPECT_EQ(texts.at(name), text) << "job " << id;
    }
  }
}

TEST(TextBatch, ACancelledJobSaysNothingMoreAndItsPlaceIsFree) {
  TextBatch batch(batch_model(), small_tokenizer(), {.texts = 1, .cache_tokens = 64});
  batch.add(1, job_of(1));
  batch.add(2, job_of(2));
  batch.step();
  EXPECT_TRUE(batch.has_waiting());
  batch.cancel(1);
  Texts texts;
  while (batch.has_work()) take(batch.step(), texts);
  EXPECT_EQ(texts, alone(batch_model(), 2));
  batch.cancel(2);  // finished: nothing to do
  batch.add(3, job_of(3));
  batch.cancel(3);  // while its prompt is being computed
  EXPECT_FALSE(batch.has_work());
  batch.add(5, job_of(5));
  texts.clear();
  while (batch.has_work()) take(batch.step(), texts);
  EXPECT_EQ(texts, alone(batch_model(), 5));
}

TEST(TextBatch, TheLikeliestTokensAreToldWithTheirLogProbabilities) {
  TextBatch batch(batch_model(), small_tokenizer(), {.texts = 1, .cache_tokens = 64});
  TextJob job = job_of(1);
  job.sampling = {.temperature = 0};
  job.likeliest = 4;
  batch.add(1, job);
  while (batch.has_work()) {
    for (const TextStep& step : batch.step()) {
      ASSERT_EQ(step.likeliest.size(), 4u);
      EXPECT_EQ(step.likeliest[0].token, step.draw.token);
      EXPECT_EQ(step.likeliest[0].log_prob, step.draw.log_prob);
      for (std::size_t i = 1; i < 4; ++i) EXPECT_LE(step.likeliest[i].log_prob, step.likeliest[i - 1].log_prob);
    }
  }
}

TEST(TextBatch, ATextBeyondTheCacheIsABug) {
  TextBatch batch(batch_model(), small_tokenizer(), {.texts = 1, .cache_tokens = 16});
  EXPECT_THROW(batch.add(1, {.prompt = std::vector<TokenId>(10, 5), .max_tokens = 7}), CheckError);
}

}  // namespace
}  // namespace carnot
