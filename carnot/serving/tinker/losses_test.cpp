#include "carnot/serving/tinker/losses.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include "carnot/core/base/random.h"
#include "reference/tinker_losses.h"
#include "testing/tinker_requests.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ForwardBackwardRequest random_request(const std::string& loss, int data = 1) {
  ForwardBackwardRequest request = testing::tinker_request(loss, data, 5);
  if (loss == "dro") request.settings["beta"] = 0.3;
  if (loss == "ppo" || loss == "cispo") request.settings["clip_high_threshold"] = 1.4;
  return request;
}

class EachTinkerLoss : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Losses, EachTinkerLoss,
                         ::testing::Values("cross_entropy", "importance_sampling", "ppo", "cispo", "dro"),
                         [](const auto& given) { return given.param; });

TEST_P(EachTinkerLoss, EqualsItsDefinitionTokenByTokenAndSoDoesItsGradient) {
  RandomStream random(6);
  const ForwardBackwardRequest request = random_request(GetParam(), 40);
  const auto loss = make_tinker_loss(request).value();
  for (const TinkerDatum& datum : request.data) {
    std::vector<double> log_probs;
    for (const double sampled : datum.inputs.at("logprobs").values)
      log_probs.push_back(sampled + 0.4 * random.normal());
    at::Tensor log_probs_T = at::tensor(log_probs, at::kDouble);
    log_probs_T.set_requires_grad(true);
    const at::Tensor losses_T = loss->of_tokens(datum, log_probs_T);
    losses_T.sum().backward();
    for (std::size_t i = 0; i < log_probs.size(); ++i) {
      const auto input = [&](const char* name) { return datum.inputs.at(name).values[i]; };
      const reference::TinkerTokenLoss expected =
          reference::tinker_loss(GetParam(), {.log_prob = log_probs[i],
                                              .sampled = input("logprobs"),
                                              .advantage = input("advantages"),
                                              .weight = input("weights"),
                                              .high = request.settings.contains("clip_high_threshold") ? 1.4 : 1.2,
                                              .beta = 0.3});
      EXPECT_NEAR(losses_T.data_ptr<double>()[i], expected.loss, 1e-12);
      EXPECT_NEAR(log_probs_T.grad().data_ptr<double>()[i], expected.slope, 1e-12);
    }
  }
}

TEST(TinkerLoss, WithoutWeightsCountsEveryTokenOnce) {
  ForwardBackwardRequest request = random_request("cross_entropy");
  request.data.front().inputs.erase("weights");
  const at::Tensor log_probs_T = -at::arange(std::ssize(request.data.front().tokens), at::kDouble);
  const at::Tensor losses_T = make_tinker_loss(request).value()->of_tokens(request.data.front(), log_probs_T);
  EXPECT_TRUE(at::equal(losses_T, -log_probs_T));
}

TEST(TinkerLoss, NamesEverythingThatIsWrongWithARequest) {
  const auto error = [](const ForwardBackwardRequest& request) { return make_tinker_loss(request).error().message; };
  ForwardBackwardRequest request = random_request("dro");
  request.settings = {{"bta", 1.0}};
  request.data.front().inputs["advantages"] = testing::tinker_tensor({1, 2});
  request.data.front().inputs["logprobs"].values[1] = std::numeric_limits<double>::infinity();
  request.data.front().inputs.erase("target_tokens");
  EXPECT_THAT(error(request), AllOf(HasSubstr("loss_fn_config.bta"), HasSubstr("loss_fn_config.beta: dro needs it"),
                                    HasSubstr("misses target_tokens"), HasSubstr("advantages: expected a number for"),
                                    HasSubstr("logprobs: expected finite")));
  request.loss = "reinforce";
  EXPECT_THAT(error(request), AllOf(HasSubstr("'reinforce'"), HasSubstr("importance_sampling, ppo")));
  request = random_request("ppo");
  request.settings["clip_low_threshold"] = "low";
  request.data.front().tokens.clear();
  EXPECT_THAT(error(request),
              AllOf(HasSubstr("clip_low_threshold: expected a number"), HasSubstr("at least one token")));
}

}  // namespace
}  // namespace carnot
