#include "carnot/serving/tinker/requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Request>
std::string error_of(const Result<Request>& result) {
  return result ? "" : result.error().message;
}

TEST(TinkerRequests, OfATextHaveEverythingThatTheClientSends) {
  const auto read = parse_sample(R"({"num_samples": 3, "prompt": {"chunks": [{"tokens": [1, 2], "type": "encoded_text"},
      {"tokens": [3], "type": "encoded_text"}]}, "sampling_params": {"max_tokens": 5, "seed": 9, "stop": ["a", "bc"],
      "temperature": 0.5, "top_k": -1, "top_p": 0.9}, "sampling_session_id": "s:sample:0", "seq_id": 4,
      "prompt_logprobs": true, "prompt_logprobs_last_n": 2, "topk_sample_logprobs": 2, "topk_prompt_logprobs": 0,
      "record_stability_info": false, "prompt_alt_tokens_k": 0, "type": "sample"})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->sampling_session_id, "s:sample:0");
  EXPECT_EQ(read->seq_id, 4);
  EXPECT_THAT(read->prompt, ElementsAre(1, 2, 3));
  EXPECT_EQ(read->samples, 3);
  EXPECT_EQ(read->max_tokens, 5);
  EXPECT_EQ(read->seed, 9u);
  EXPECT_EQ(read->temperature, 0.5);
  EXPECT_EQ(read->top_p, 0.9);
  EXPECT_EQ(read->top_k, 0);
  EXPECT_THAT(read->stop_strings, ElementsAre("a", "bc"));
  EXPECT_THAT(read->stop_tokens.value(), ElementsAre());
  EXPECT_EQ(read->likeliest, 2);
  EXPECT_TRUE(read->prompt_log_probs);
  EXPECT_EQ(read->prompt_log_probs_last, 2);
}

TEST(TinkerRequests, StopAtTheModelsEndUnlessTheyNameTheirOwn) {
  const auto stops = [](const std::string& stop) {
    return parse_sample(R"({"prompt": {"chunks": [{"tokens": [1]}]}, "sampling_params": {)" + stop +
                        R"(}, "sampling_session_id": "s", "seq_id": 0})")
        .value();
  };
  EXPECT_FALSE(stops("").stop_tokens);
  EXPECT_FALSE(stops(R"("stop": null)").stop_tokens);
  EXPECT_THAT(stops(R"("stop": [])").stop_tokens.value(), ElementsAre());
  EXPECT_THAT(stops(R"("stop": [7, 8])").stop_tokens.value(), ElementsAre(7, 8));
  EXPECT_THAT(stops(R"("stop": "x")").stop_strings, ElementsAre("x"));
}

TEST(TinkerRequests, ReportAllThatIsWrongWithThemAtOnce) {
  EXPECT_THAT(error_of(parse_sample(R"({"prompt": {"chunks": [{"tokens": [1, -2]}]}, "sampling_params":
      {"temperature": -1, "stop": [1, "a"], "max_tokens": 0}, "topk_prompt_logprobs": 3, "num_samples": 0})")),
              AllOf(HasSubstr("sampling_session_id"), HasSubstr("seq_id"), HasSubstr("prompt: expected chunks"),
                    HasSubstr("temperature"), HasSubstr("stop: expected"), HasSubstr("max_tokens"),
                    HasSubstr("topk_prompt_logprobs: not supported"), HasSubstr("num_samples")));
  EXPECT_THAT(
      error_of(parse_create_model(R"({"session_id": 3, "lora_config": {"rank": 0, "train_attn": false,
      "train_mlp": false}, "optimizer_config": {"type": "dimuon"}})")),
      AllOf(HasSubstr("session_id: expected a string"), HasSubstr("model_seq_id"), HasSubstr("base_model"),
            HasSubstr("rank"), HasSubstr("train_unembed alone"), HasSubstr("expected adamw, found \"dimuon\"")));
  EXPECT_THAT(error_of(parse_optim_step(R"({"model_id": "m", "seq_id": 1, "adam_params": {"beta1": 2, "eps": "x"}})")),
              AllOf(HasSubstr("beta1"), HasSubstr("eps")));
  EXPECT_THAT(error_of(parse_optim_step(R"({"model_id": "m", "seq_id": 1, "optimizer_params": {"type": "dimuon"}})")),
              HasSubstr("other optimizers are not supported"));
  EXPECT_THAT(error_of(parse_load_weights("{}")),
              AllOf(HasSubstr("path"), HasSubstr("session_id"), HasSubstr("model_seq_id")));
  EXPECT_THAT(error_of(parse_save_weights(R"({"model_id": "m", "seq_id": 1, "kind": "inflight"})")),
              HasSubstr("kind: expected snapshot, found \"inflight\""));
  EXPECT_THAT(error_of(parse_save_weights("[]")), HasSubstr("object"));
  EXPECT_THAT(error_of(parse_sampling_session(R"({"session_id": "s", "sampling_session_seq_id": 0})")),
              HasSubstr("expected base_model or model_path"));
}

TEST(TinkerRequests, IgnoreFieldsOfLaterClients) {
  EXPECT_TRUE(parse_save_weights(R"({"model_id": "m", "seq_id": 1, "path": "a", "colour": 3})").ok());
  const auto adam = parse_optim_step(R"({"model_id": "m", "seq_id": 1, "adam_params": {"learning_rate": 0.5}})");
  EXPECT_EQ(adam->adam.learning_rate, 0.5);
  EXPECT_EQ(adam->adam.beta2, 0.95);
}

}  // namespace
}  // namespace carnot
