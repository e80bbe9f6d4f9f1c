#include "carnot/serving/tinker/method_loss.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "carnot/core/base/json.h"
#include "carnot/core/recompute/recompute_credit.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "carnot/core/train/explanation.h"
#include "carnot/serving/tinker/trained_adapter.h"
#include "testing/small_model.h"
#include "testing/tinker_requests.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::tinker_tensor;

constexpr int kRows = 4096;
constexpr int kSiblings = 3;

const Model& reference_model() {
  static const Model model = testing::small_model({.max_positions = 128});
  return model;
}

TrainedAdapter trained_once() {
  TrainedAdapter adapter(reference_model(), {.rank = 4, .alpha = kTinkerAlpha}, 7, kRows);
  adapter.forward_backward(testing::tinker_request("cross_entropy", 3, 2)).value();
  adapter.optim_step({.learning_rate = 0.02});
  return adapter;
}

/// Two groups of trajectories with two turns each, actions and gains, sampled by about the same policy.
ForwardBackwardRequest trajectories_of(const std::string& method) {
  RandomStream random(9);
  ForwardBackwardRequest request{.loss = method};
  for (int i = 0; i < 2 * kSiblings; ++i) {
    TinkerDatum datum{.tokens = {static_cast<TokenId>(i / kSiblings), 2, 3}};
    std::vector<double> mask = {0, 0};
    for (const int kind : {1, 1, 1, 0, 0, 1, 1, 1, 1}) {
      mask.push_back(kind);
      datum.tokens.push_back(static_cast<TokenId>(random.below(40)));
    }
    std::vector<double> targets(datum.tokens.begin() + 1, datum.tokens.end());
    datum.tokens.pop_back();
    std::vector<double> sampled, action, gain;
    for (std::size_t t = 0; t < mask.size(); ++t) {
      sampled.push_back(mask[t] != 0 ? -3 + random.normal() : 0);
      action.push_back(t % 2 == 0 ? 1 : 0);
      gain.push_back(0.1 * static_cast<double>(i));
    }
    datum.inputs = {{"target_tokens", tinker_tensor(targets)},
                    {"mask", tinker_tensor(mask)},
                    {"logprobs", tinker_tensor(sampled)},
                    {"action", tinker_tensor(action)},
                    {"info_gain", tinker_tensor(gain)},
                    {"group", tinker_tensor({double(i / kSiblings)})},
                    {"score", tinker_tensor({double(i % kSiblings)})}};
    request.data.push_back(datum);
  }
  return request;
}

/// The same as rows, with what an independent pass measures.
std::string rows_of(const ForwardBackwardRequest& request, const Model& policy) {
  std::string text;
  for (std::size_t i = 0; i < request.data.size(); ++i) {
    const TinkerDatum& datum = request.data[i];
    const auto values = [&](const char* name) { return datum.inputs.at(name).values; };
    MeasuredSequence sequence{.tokens = datum.tokens};
    sequence.tokens.push_back(static_cast<TokenId>(values("target_tokens").back()));
    for (int t = 1; t < std::ssize(sequence.tokens); ++t) sequence.targets.push_back(t);
    const TargetStatistics now = measure_targets(policy, std::span(&sequence, 1), kRows, 1);
    const TargetStatistics before = measure_targets(reference_model(), std::span(&sequence, 1), kRows, 1);
    const auto list = [&](const std::vector<double>& numbers, double sign = 1) {
      Json all{Json()};
      for (std::size_t t = 0; t < numbers.size(); ++t)
        all.push_back(values("mask")[t] != 0 ? Json(sign * numbers[t]) : Json());
      return all;
    };
    Json mask{0}, segment{"prompt"};
    for (std::size_t t = 0; t < values("mask").size(); ++t) {
      mask.push_back(static_cast<int>(values("mask")[t]));
      segment.push_back(values("mask")[t] == 0 ? (t < 2 ? "prompt" : "observation")
                                               : (values("action")[t] != 0 ? "action" : "think"));
    }
    text += json_line(Json{{"uid", std::to_string(i / kSiblings)},
                           {"traj_id", i},
                           {"score", values("score").front()},
                           {"token_ids", sequence.tokens},
                           {"loss_mask", mask},
                           {"segment", segment},
                           {"turns",
                            {{{"start", 0}, {"end", 8}, {"info_gain", values("info_gain").front()}},
                             {{"start", 8}, {"end", 12}, {"reward", values("score").front()}}}},
                           {"logp", list(now.log_prob)},
                           {"logp_old", list(values("logprobs"))},
                           {"logp_rollout", list(values("logprobs"))},
                           {"entropy_old", list(now.entropy)},
                           {"logp_ref", list(before.log_prob)},
                           {"energy_ref", list(before.logsumexp, -1)}}) +
            "\n";
  }
  return text;
}

/// Cross-entropy whose weights are the slopes that `carnot credit --explain` gives.
ForwardBackwardRequest explained(const ForwardBackwardRequest& request, const Model& policy,
                                 const std::vector<std::string>& overrides) {
  const auto rows =
      credit_rows_of({.file = "rows", .method = request.loss, .overrides = overrides}, rows_of(request, policy))
          .value();
  const auto explanation = explain_steps(rows.method.objective, rows.all, rows.credit).value();
  ForwardBackwardRequest weighted = request;
  weighted.loss = "cross_entropy";
  weighted.settings.clear();
  for (std::size_t i = 0; i < rows.all.size(); ++i) {
    std::vector<double> weights;
    for (const double slope : explanation.trajectories[i].gradient) weights.push_back(std::isnan(slope) ? 0 : -slope);
    weights.erase(weights.begin());
    weighted.data[static_cast<std::size_t>(rows.file.line_of_row[i]) - 1].inputs["weights"] = tinker_tensor(weights);
  }
  return weighted;
}

struct MethodCase {
  std::string method;
  std::map<std::string, TinkerSetting> settings{};
  std::vector<std::string> overrides{};
};

class MethodLoss : public ::testing::TestWithParam<MethodCase> {};
INSTANTIATE_TEST_SUITE_P(
    Methods, MethodLoss,
    ::testing::Values(MethodCase{"grpo"}, MethodCase{"grpo + aem", {{"aem.lambda", 0.5}}, {"aem.lambda=0.5"}},
                      MethodCase{"gspo"}, MethodCase{"dapo", {{"filter.name", "none"}}, {"filter.name=none"}},
                      MethodCase{"rloo"},
                      MethodCase{
                          "dr_grpo", {{"objective.reduction_constant", 40.0}}, {"objective.reduction_constant=40"}},
                      MethodCase{"grpo + actfocus"}, MethodCase{"a2tgpo"}, MethodCase{"igpo"}, MethodCase{"aepo"}));

TEST_P(MethodLoss, HasTheGradientThatCreditExplains) {
  ForwardBackwardRequest request = trajectories_of(GetParam().method);
  request.settings = GetParam().settings;
  TrainedAdapter by_method = trained_once(), by_slopes = trained_once();
  const auto output = by_method.forward_backward(request);
  ASSERT_TRUE(output.ok()) << output.error().message;
  EXPECT_TRUE(output->metrics.contains("loss:sum"));
  const Model policy = by_slopes.snapshot();
  by_slopes.forward_backward(explained(request, policy, GetParam().overrides)).value();
  const AdamParams linear{.learning_rate = 1e3, .beta1 = 0, .beta2 = 0, .epsilon = 1};
  const double norm = by_method.optim_step(linear).at("grad_norm");
  EXPECT_GT(norm, 1e-3);
  EXPECT_NEAR(by_slopes.optim_step(linear).at("grad_norm"), norm, 1e-4 * norm);
  const Model one = by_method.snapshot(), other = by_slopes.snapshot();
  const auto a = one.adapters(), b = other.adapters();
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_LT((a[i].tensor - b[i].tensor).abs().max().item<double>(), 1e-3 * 1e3 * norm) << a[i].name;
}

TEST(MethodLossRequest, SaysAllThatIsMissing) {
  TrainedAdapter adapter = trained_once();
  const auto error = [&](const ForwardBackwardRequest& request) {
    return adapter.forward_backward(request).error().message;
  };
  ForwardBackwardRequest request = trajectories_of("grpo");
  request.data[1].inputs.erase("score");
  request.data[2].inputs["logprobs"] = tinker_tensor({1});
  request.data[3].inputs["target_tokens"].values[0] = 39;
  EXPECT_THAT(error(request), AllOf(HasSubstr("data[1].loss_fn_inputs: misses score"),
                                    HasSubstr("data[2].loss_fn_inputs: logprobs: expected a number for each"),
                                    HasSubstr("data[3].loss_fn_inputs: target_tokens[0]: expected the next token")));
  EXPECT_THAT(error(trajectories_of("ppo_critic")), HasSubstr("or a method of Carnot"));
  request = trajectories_of("grpo");
  request.data[2] = {};
  EXPECT_THAT(error(request), HasSubstr("data[2].loss_fn_inputs: expected at least one token"));
  EXPECT_THAT(error(trajectories_of("dr_grpo")), HasSubstr("objective.reduction_constant: expected the divisor"));
  request = trajectories_of("grpo + aem");
  request.settings = {{"aem.lamda", 1.0}};
  EXPECT_THAT(error(request), HasSubstr("aem.lamda"));
  request = trajectories_of("igpo");
  for (TinkerDatum& datum : request.data) datum.inputs.erase("info_gain");
  EXPECT_THAT(error(request), HasSubstr("info_gain: this field is missing"));
}

}  // namespace
}  // namespace carnot
