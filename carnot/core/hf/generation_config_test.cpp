#include "carnot/core/hf/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GenerationConfig, ReadsAllEndTokensAndTheSamplingSettings) {
  const auto config = parse_generation_config(
      R"({"bos_token_id": 5, "eos_token_id": [7, 9], "do_sample": true, "temperature": 0.7, "top_p": 0.8, "top_k": 20,
          "repetition_penalty": 1.05, "num_beams": 1, "transformers_version": "4.57.6"})",
      "generation_config.json");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_THAT(config->eos_tokens, ElementsAre(7, 9));
  EXPECT_EQ(config->do_sample, true);
  EXPECT_EQ(config->temperature, 0.7);
  EXPECT_EQ(config->top_p, 0.8);
  EXPECT_EQ(config->top_k, 20);
  EXPECT_THAT(config->ignored, ElementsAre("repetition_penalty 1.05"));
}

TEST(GenerationConfig, WhatIsAbsentOrNullIsNotSet) {
  const auto config = parse_generation_config(R"({"temperature": null})", "generation_config.json");
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->eos_tokens.empty());
  EXPECT_FALSE(config->temperature || config->top_p || config->top_k || config->do_sample);
}

TEST(GenerationConfig, WrongTypesAreNamedAllAtOnce) {
  const auto config = parse_generation_config(R"({"eos_token_id": "x", "top_k": -1, "top_p": "1"})", "g.json");
  ASSERT_FALSE(config.ok());
  for (const char* part : {"g.json: eos_token_id is \"x\"", "g.json: top_k is -1", "g.json: top_p is \"1\""})
    EXPECT_THAT(config.error().message, HasSubstr(part));
  EXPECT_FALSE(parse_generation_config("[]", "g.json").ok());
}

TEST(GenerationConfig, OfANewModelReadsBack) {
  EXPECT_THAT(parse_generation_config(generation_config_json({3, 4}), "g.json")->eos_tokens, ElementsAre(3, 4));
  EXPECT_THAT(parse_generation_config(generation_config_json({3}), "g.json")->eos_tokens, ElementsAre(3));
}

}  // namespace
}  // namespace carnot
