#include "carnot/serving/tinker/trained_adapter.h"

#include <ATen/Functions.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "carnot/core/base/temporary_name.h"
#include "carnot/core/rollout/log_prob_pass.h"
#include "testing/small_model.h"
#include "testing/tinker_requests.h"

namespace carnot {
namespace {

using ::testing::HasSubstr;
using testing::tinker_request;

const LoraOptions kLora{.rank = 4, .alpha = kTinkerAlpha};

const Model& base() {
  static const Model model = testing::small_model({.max_positions = 128});
  return model;
}

std::vector<at::Tensor> weights_of(const TrainedAdapter& adapter) {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& named : adapter.snapshot().adapters()) tensors.push_back(named.tensor.detach().clone());
  return tensors;
}

double largest_difference(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>());
  return largest;
}

TrainedAdapter fresh(int micro_batch_tokens = 4096) { return TrainedAdapter(base(), kLora, 7, micro_batch_tokens); }

TEST(TrainedAdapter, LogProbsAreThoseOfTheLogProbPassBitForBit) {
  TrainedAdapter adapter = fresh();
  adapter.forward_backward(tinker_request("cross_entropy", 3, 1)).value();
  adapter.optim_step({.learning_rate = 0.05});
  const ForwardBackwardRequest request = tinker_request("cross_entropy", 5, 2);
  const auto output = adapter.forward_backward(request).value();
  const Model policy = adapter.snapshot();
  for (std::size_t d = 0; d < request.data.size(); ++d) {
    MeasuredSequence sequence{.tokens = request.data[d].tokens};
    sequence.tokens.push_back(static_cast<TokenId>(request.data[d].inputs.at("target_tokens").values.back()));
    for (int i = 1; i < std::ssize(sequence.tokens); ++i) sequence.targets.push_back(i);
    const auto measured = measure_targets(policy, std::span(&sequence, 1), 4096, 1);
    for (std::size_t i = 0; i < measured.log_prob.size(); ++i)
      EXPECT_EQ(output.columns.at("logprobs")[d][i], static_cast<float>(measured.log_prob[i]));
  }
}

class TrainedAdapterByLoss : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Losses, TrainedAdapterByLoss,
                         ::testing::Values("cross_entropy", "importance_sampling", "ppo", "cispo"),
                         [](const auto& given) { return given.param; });

TEST_P(TrainedAdapterByLoss, DataTogetherInChunksAndAloneGiveTheSameUpdate) {
  const ForwardBackwardRequest all = tinker_request(GetParam(), 6, 3);
  TrainedAdapter together = fresh(), small = fresh(20), alone = fresh();
  double loss = together.forward_backward(all)->metrics.at("loss:sum"), sum = 0;
  EXPECT_NEAR(small.forward_backward(all)->metrics.at("loss:sum"), loss, 1e-4);
  for (const TinkerDatum& datum : all.data)
    sum += alone.forward_backward({.loss = all.loss, .data = {datum}})->metrics.at("loss:sum");
  EXPECT_NEAR(sum, loss, 1e-4);
  // A large epsilon makes the update linear in the gradient.
  const AdamParams linear{.learning_rate = 1e3, .beta1 = 0, .beta2 = 0, .epsilon = 1};
  const double norm = together.optim_step(linear).at("grad_norm");
  EXPECT_GT(norm, 0.01);
  EXPECT_NEAR(small.optim_step(linear).at("grad_norm"), norm, 1e-4 * norm);
  EXPECT_NEAR(alone.optim_step(linear).at("grad_norm"), norm, 1e-4 * norm);
  EXPECT_LT(largest_difference(weights_of(together), weights_of(small)), 0.02);
  EXPECT_LT(largest_difference(weights_of(together), weights_of(alone)), 0.02);
  EXPECT_GT(largest_difference(weights_of(together), weights_of(fresh())), 1);
}

TEST(TrainedAdapter, ForwardAloneChangesNothing) {
  TrainedAdapter adapter = fresh();
  ForwardBackwardRequest request = tinker_request("ppo", 3, 4);
  request.forward_only = true;
  const auto once = adapter.forward_backward(request).value();
  EXPECT_EQ(adapter.optim_step({.learning_rate = 1}).at("grad_norm"), 0);
  request.forward_only = false;
  EXPECT_EQ(adapter.forward_backward(request)->columns, once.columns);
}

TEST(TrainedAdapter, ContinuesFromWhatItSavedBitForBit) {
  const auto parent = make_temporary_folder(std::filesystem::temp_directory_path()).value();
  const auto train = [](TrainedAdapter& adapter, int from, int to) {
    for (int step = from; step < to; ++step) {
      ASSERT_TRUE(adapter.forward_backward(tinker_request("importance_sampling", 4, step)).ok());
      adapter.optim_step({.learning_rate = 0.01, .beta1 = step < 2 ? 0.9 : 0.8, .max_grad_norm = 1});
    }
  };
  TrainedAdapter straight = fresh(), before = fresh(), after = fresh();
  train(straight, 0, 5);
  train(before, 0, 3);
  ASSERT_TRUE(before.save(parent, "base", true).ok());
  train(after, 7, 9);  // is overwritten
  ASSERT_TRUE(after.forward_backward(tinker_request("ppo", 2, 9)).ok());
  ASSERT_TRUE(after.load(parent, true).ok());
  train(after, 3, 5);
  EXPECT_EQ(largest_difference(weights_of(straight), weights_of(after)), 0);
  TrainedAdapter other(base(), {.rank = 2, .alpha = kTinkerAlpha}, 7, 4096);
  const auto untouched = weights_of(other);
  EXPECT_THAT(other.load(parent, true).error().message, HasSubstr("rank, alpha or targets"));
  EXPECT_EQ(largest_difference(untouched, weights_of(other)), 0);
  std::filesystem::remove_all(parent);
}

TEST(TrainedAdapter, LeavesTheSharedWeightsAndOtherAdaptersAsTheyAre) {
  std::vector<at::Tensor> before;
  for (const NamedTensor& named : base().parameters()) before.push_back(named.tensor.detach().clone());
  TrainedAdapter one = fresh(), other = fresh();
  one.forward_backward(tinker_request("cross_entropy", 3, 1)).value();
  one.optim_step({.learning_rate = 0.1});
  EXPECT_EQ(largest_difference(weights_of(other), weights_of(fresh())), 0);
  const auto after = base().parameters();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(at::equal(before[i], after[i].tensor)) << after[i].name;
}

TEST(TrainedAdapter, RefusesTokensThatTheModelDoesNotHave) {
  TrainedAdapter adapter = fresh();
  ForwardBackwardRequest request = tinker_request("cross_entropy", 2, 1);
  request.data[1].inputs["target_tokens"].values[0] = 1e6;
  EXPECT_THAT(adapter.forward_backward(request).error().message, HasSubstr("data[1].target_tokens"));
  request.data[0].tokens[0] = -1;
  EXPECT_THAT(adapter.forward_backward(request).error().message, HasSubstr("data[0].model_input: token -1"));
}

}  // namespace
}  // namespace carnot
