#include "carnot/core/optim/adamw.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/optim/local_optimizer.h"
#include "carnot/core/optim/rounding.h"
#include "carnot/core/optim/schedule.h"
#include "reference/adamw.h"
#include "testing/paths.h"
#include "testing/weights_of.h"

namespace carnot {
namespace {

using ::carnot::testing::weights_of;

at::Tensor random_tensor(RandomStream& random, at::IntArrayRef shape, at::ScalarType dtype = at::kDouble) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.mutable_data_ptr<double>()[i] = random.normal();
  return tensor.to(dtype);
}

/// A matrix larger than one chunk, a vector, a small matrix.
Optimizer::Tensors random_parameters(RandomStream& random, at::ScalarType dtype) {
  return {{"matrix", random_tensor(random, {300, 170}, dtype).requires_grad_()},
          {"bias", random_tensor(random, {37}, dtype).requires_grad_()},
          {"small", random_tensor(random, {3, 5}, dtype).requires_grad_()}};
}

void set_random_gradients(const Optimizer::Tensors& parameters, RandomStream& random) {
  for (const auto& [name, tensor] : parameters)
    tensor.mutable_grad() = random_tensor(random, tensor.sizes(), tensor.scalar_type());
}

Optimizer::Tensors copies(const Optimizer::Tensors& parameters) {
  Optimizer::Tensors all;
  for (const auto& [name, tensor] : parameters)
    all.emplace_back(name, tensor.detach().clone().requires_grad_(tensor.requires_grad()));
  return all;
}

bool same_bits(const Optimizer::Tensors& a, const Optimizer::Tensors& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!at::equal(a[i].second, b[i].second)) return false;
  return a.size() == b.size();
}

TEST(AdamW, EqualsTheReferenceNumberByNumber) {
  RandomStream random(1);
  const Optimizer::Tensors parameters = random_parameters(random, at::kDouble);
  const OptimizerOptions options{
      .beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6, .weight_decay = 0.1, .max_grad_norm = 30};
  std::vector<reference::AdamWWeight> slow;
  for (const auto& [name, tensor] : parameters)
    for (std::int64_t i = 0; i < tensor.numel(); ++i)
      slow.push_back({.value = tensor.const_data_ptr<double>()[i], .decays = tensor.dim() >= 2});

  LocalOptimizer optimizer(weights_of(parameters), options);
  for (int t = 1; t <= 4; ++t) {
    set_random_gradients(parameters, random);
    std::vector<double> gradients;
    for (const auto& [name, tensor] : parameters)
      for (std::int64_t i = 0; i < tensor.numel(); ++i) gradients.push_back(tensor.grad().const_data_ptr<double>()[i]);
    const double rate = 0.01 * t;
    optimizer.step(rate);
    reference::adamw_step({rate, 0.8, 0.95, 1e-6, 0.1, 30}, t, gradients, slow);
    std::size_t at = 0;
    for (const auto& [name, tensor] : parameters)
      for (std::int64_t i = 0; i < tensor.numel(); ++i, ++at)
        // The clipping's 1e-6 next to the norm is not in the reference implementation: a relative 1e-8 of the gradient.
        ASSERT_NEAR(tensor.const_data_ptr<double>()[i], slow[at].value, 1e-8) << name << " " << i << " after " << t;
  }
}

TEST(AdamW, EqualsWhatTorchRecorded) {
  const auto text = read_file(source_path("tests/golden/adamw.json"));
  ASSERT_TRUE(text.ok());
  int compared = 0;
  for (const auto& recorded : nlohmann::json::parse(*text)) {
    Optimizer::Tensors parameters;
    const auto tensor_of = [&](const std::string& name, const nlohmann::json& numbers) {
      const auto values = numbers.get<std::vector<double>>();
      return at::tensor(at::ArrayRef<double>(values), at::kDouble)
          .reshape(at::IntArrayRef(recorded["shapes"][name].get<std::vector<std::int64_t>>()));
    };
    for (const auto& [name, numbers] : recorded["start"].items())
      parameters.emplace_back(name, tensor_of(name, numbers).requires_grad_());
    LocalOptimizer optimizer(weights_of(parameters), {.beta1 = recorded["beta1"],
                                                      .beta2 = recorded["beta2"],
                                                      .epsilon = recorded["epsilon"],
                                                      .weight_decay = recorded["weight_decay"],
                                                      .max_grad_norm = recorded["max_grad_norm"]});
    for (const auto& step : recorded["steps"]) {
      for (const auto& [name, tensor] : parameters) tensor.mutable_grad() = tensor_of(name, step["gradients"][name]);
      const StepReport report = optimizer.step(step["rate"]);
      EXPECT_NEAR(report.grad_norm, step["grad_norm"].get<double>(), 1e-13);
      for (const auto& [name, tensor] : parameters)
        EXPECT_TRUE(at::allclose(tensor, tensor_of(name, step["weights"][name]), 1e-12, 1e-14)) << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 15);
}

TEST(AdamW, FusedAndPortableUpdatesAgree) {
  RandomStream random(2);
  for (at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor gradient = random_tensor(random, {301, 70}, dtype);
    at::Tensor weight = random_tensor(random, {301, 70}, dtype), first = random_tensor(random, {301, 70}, dtype);
    at::Tensor second = random_tensor(random, {301, 70}, dtype).square();
    at::Tensor other_weight = weight.clone(), other_first = first.clone(), other_second = second.clone();
    const AdamWUpdate update{.gradient_scale = 0.7,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .epsilon = 1e-6,
                             .keep = 0.999,
                             .step_size = 0.02,
                             .inverse_root = 1.7};
    adamw_update(update, gradient, weight, first, second);
    adamw_update_portable(update, gradient, other_weight, other_first, other_second);
    const double tolerance = dtype == at::kFloat ? 2e-6 : 1e-14;
    EXPECT_TRUE(at::allclose(weight, other_weight, tolerance, tolerance));
    EXPECT_TRUE(at::allclose(first, other_first, tolerance, tolerance));
    EXPECT_TRUE(at::allclose(second, other_second, tolerance, tolerance));
  }
}

TEST(AdamW, OneThreadAndTwoGiveTheSameBits) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    RandomStream random(3);
    const Optimizer::Tensors start = random_parameters(random, dtype);
    std::vector<Optimizer::Tensors> results;
    std::vector<double> norms;
    for (int threads : {1, 2}) {
      set_num_threads(threads);
      RandomStream draws(4);
      const Optimizer::Tensors parameters = copies(start);
      LocalOptimizer optimizer(weights_of(parameters), {.weight_decay = 0.1});
      for (int t = 0; t < 3; ++t) {
        set_random_gradients(parameters, draws);
        norms.push_back(optimizer.step(0.01).grad_norm);
      }
      results.push_back(parameters);
    }
    set_num_threads(1);
    EXPECT_TRUE(same_bits(results[0], results[1])) << toString(dtype);
    EXPECT_EQ(norms[2], norms[5]);
  }
}

TEST(AdamW, ResumedFromItsStateContinuesBitForBit) {
  for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    RandomStream random(5);
    const Optimizer::Tensors straight = random_parameters(random, dtype);
    LocalOptimizer optimizer(weights_of(straight), {.weight_decay = 0.01});
    const auto step = [&](LocalOptimizer& one, const Optimizer::Tensors& parameters, int t) {
      RandomStream draws(100 + static_cast<std::uint64_t>(t));
      set_random_gradients(parameters, draws);
      one.step(0.003);
    };
    for (int t = 0; t < 3; ++t) step(optimizer, straight, t);

    const Optimizer::Tensors saved = copies(optimizer.state());
    const Optimizer::Tensors resumed = copies(straight);
    LocalOptimizer continued(weights_of(resumed), {.weight_decay = 0.01});
    ASSERT_TRUE(continued.load_state(saved, optimizer.num_updates(), optimizer.num_skipped()).ok());
    for (int t = 3; t < 6; ++t) {
      step(optimizer, straight, t);
      step(continued, resumed, t);
    }
    EXPECT_TRUE(same_bits(straight, resumed));
    EXPECT_TRUE(same_bits(optimizer.state(), continued.state()));
    EXPECT_EQ(continued.num_updates(), 6);
  }
}

TEST(AdamW, NotifiesCachesOfChangedWeights) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    RandomStream random(8);
    const Optimizer::Tensors parameters = random_parameters(random, dtype);
    LocalOptimizer optimizer(weights_of(parameters), {});
    set_random_gradients(parameters, random);
    std::vector<std::int64_t> before;
    for (const auto& [name, tensor] : parameters) before.push_back(tensor._version());
    optimizer.step(0.1);
    for (std::size_t i = 0; i < parameters.size(); ++i) EXPECT_GT(parameters[i].second._version(), before[i]);
  }
}

TEST(AdamW, NonFiniteGradientsChangeNothingButTheCounter) {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    RandomStream random(6);
    const Optimizer::Tensors parameters = random_parameters(random, at::kFloat);
    const Optimizer::Tensors before = copies(parameters);
    LocalOptimizer optimizer(weights_of(parameters), {});
    set_random_gradients(parameters, random);
    parameters[1].second.grad()[7] = bad;
    const StepReport report = optimizer.step(0.1);
    EXPECT_TRUE(report.skipped);
    EXPECT_FALSE(std::isfinite(report.grad_norm));
    EXPECT_TRUE(same_bits(parameters, before));
    EXPECT_EQ(optimizer.num_skipped(), 1);
    EXPECT_EQ(optimizer.num_updates(), 0);
    for (const auto& [name, tensor] : optimizer.state()) EXPECT_EQ(tensor.abs().max().item<double>(), 0) << name;
    for (const auto& [name, tensor] : parameters) EXPECT_FALSE(tensor.grad().defined()) << name;
  }
}

TEST(AdamW, OfBfloat16WeightsAndTheirOtherHalvesIsThatOfFloat32BitForBit) {
  RandomStream random(23);
  const Optimizer::Tensors narrow = random_parameters(random, at::kBFloat16);
  Optimizer::Tensors wide = copies(narrow);
  for (auto& [name, tensor] : wide) tensor = tensor.detach().to(at::kFloat).requires_grad_();
  LocalOptimizer halves(weights_of(narrow), {.weight_decay = 0.1}), whole(weights_of(wide), {.weight_decay = 0.1});
  RandomStream gradients(5);
  for (int step = 0; step < 30; ++step) {
    set_random_gradients(narrow, gradients);
    for (std::size_t i = 0; i < wide.size(); ++i)
      wide[i].second.mutable_grad() = narrow[i].second.grad().to(at::kFloat);
    const auto version = narrow[0].second._version();
    halves.step(1e-3);
    EXPECT_GT(narrow[0].second._version(), version) << "packed copies are made again";
    whole.step(1e-3);
  }
  const auto state = halves.state();
  const std::map<std::string, at::Tensor> kept(state.begin(), state.end());
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    const auto& [name, weight] = narrow[i];
    EXPECT_TRUE(at::equal(join_halves(weight.detach(), kept.at(name + ".residual")), wide[i].second)) << name;
  }
}

TEST(AdamW, MasterWeightsKeepUpdatesThatBfloat16WouldLose) {
  const at::Tensor weight = at::ones({4}, at::kBFloat16).requires_grad_();
  LocalOptimizer optimizer({{"weight", weight}}, {});
  for (int t = 0; t < 200; ++t) {
    weight.mutable_grad() = at::ones({4}, at::kBFloat16);
    optimizer.step(1e-4);
  }
  EXPECT_NEAR(weight.to(at::kDouble)[0].item<double>(), 0.98, 0.004);
}

TEST(AdamW, OnlyMatricesDecayAndAMissingGradientCountsAsZero) {
  const at::Tensor matrix = at::ones({2, 2}, at::kDouble).requires_grad_();
  const at::Tensor bias = at::ones({2}, at::kDouble).requires_grad_();
  LocalOptimizer optimizer({{"matrix", matrix}, {"bias", bias}}, {.weight_decay = 0.5});
  const StepReport report = optimizer.step(0.1);
  EXPECT_EQ(report.grad_norm, 0);
  EXPECT_NEAR(matrix[0][0].item<double>(), 0.95, 1e-15);
  EXPECT_EQ(bias[0].item<double>(), 1);
}

TEST(AdamW, ClipsToTheGlobalNorm) {
  // With beta1 = 0 and a huge epsilon the step is proportional to the clipped gradient.
  const at::Tensor weight = at::zeros({2}, at::kDouble).requires_grad_();
  LocalOptimizer optimizer({{"weight", weight}}, {.beta1 = 0, .epsilon = 1e6, .max_grad_norm = 1});
  weight.mutable_grad() = at::tensor({3.0, 4.0}, at::kDouble);
  EXPECT_NEAR(optimizer.step(1e6).grad_norm, 5, 1e-15);
  EXPECT_NEAR(weight[0].item<double>(), -0.6, 1e-5);
  EXPECT_NEAR(weight[1].item<double>(), -0.8, 1e-5);
}

TEST(AdamW, NamesEveryTensorThatAStateLacksOrMisshapes) {
  RandomStream random(7);
  LocalOptimizer optimizer(weights_of(random_parameters(random, at::kFloat)), {});
  Optimizer::Tensors state = copies(optimizer.state());
  state[0].first = "stranger";
  state[3].second = at::zeros({5});
  const Status loaded = optimizer.load_state(state, 1, 0);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("matrix.first_moment is missing"), std::string::npos) << loaded.error().message;
  EXPECT_NE(loaded.error().message.find("bias.second_moment has shape [5], expected [37]"), std::string::npos)
      << loaded.error().message;
  EXPECT_NE(loaded.error().message.find("stranger belongs to no weight"), std::string::npos) << loaded.error().message;
  EXPECT_EQ(optimizer.num_updates(), 0);
}

/// 400 steps towards a target, with a learning rate below half of a weight's last bit of bfloat16.
double distance_after_small_steps(const OptimizerOptions& options, at::ScalarType dtype) {
  const at::Tensor weight = at::full({4096}, 1.0, dtype).requires_grad_();
  const double target = 1.08;
  LocalOptimizer optimizer({{"weight", weight}}, options);
  for (int step = 0; step < 400; ++step) {
    weight.mutable_grad() = (weight.detach().to(at::kFloat) - target).to(dtype);
    optimizer.step(2e-4);
  }
  return target - weight.detach().to(at::kDouble).mean().item<double>();
}

TEST(AdamW, FollowsFloat32WithoutAMasterCopyAndWithBfloat16Moments) {
  const double wanted = distance_after_small_steps({}, at::kFloat);
  EXPECT_NEAR(wanted, 0, 0.006) << "of the 0.08 that lie before it";
  EXPECT_NEAR(distance_after_small_steps({.master_weights = false}, at::kBFloat16), wanted, 0.006);
  EXPECT_NEAR(distance_after_small_steps({.moments = "bfloat16"}, at::kFloat), wanted, 2e-3);
  EXPECT_NEAR(distance_after_small_steps({.master_weights = false, .moments = "bfloat16"}, at::kBFloat16), wanted,
              0.006);
  // To the nearest, no such step would have been taken at all.
  EXPECT_EQ((at::full({1}, 1.0, at::kBFloat16) + 2e-4).item<float>(), 1.0F);
}

TEST(AdamW, SaysWhatToDoWithTheStateOfAnEarlierVersion) {
  const at::Tensor weight = at::ones({4}, at::kBFloat16);
  LocalOptimizer optimizer({{"weight", weight}}, {});
  const auto loaded = optimizer.load_state({{"weight.first_moment", at::zeros({4})},
                                            {"weight.second_moment", at::zeros({4})},
                                            {"weight.master", at::ones({4})}},
                                           1, 0);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message.find("found weight.master, a whole master weight"), std::string::npos);
  EXPECT_EQ(loaded.error().message.find("missing"), std::string::npos) << "one message for all weights";
}

TEST(AdamW, KeepsLessOnRequestAndResumesFromIt) {
  RandomStream random(17);
  const OptimizerOptions options{.master_weights = false, .moments = "bfloat16"};
  const Optimizer::Tensors straight = random_parameters(random, at::kBFloat16);
  const Optimizer::Tensors resumed = copies(straight);
  LocalOptimizer first(weights_of(straight), options), second(weights_of(resumed), options);
  for (const auto& [name, tensor] : first.state()) EXPECT_EQ(tensor.scalar_type(), at::kBFloat16) << name;
  EXPECT_EQ(first.state().size(), 2 * straight.size());
  RandomStream gradients(4), again(4);
  set_random_gradients(straight, gradients);
  set_random_gradients(resumed, again);
  first.step(1e-3);
  second.step(1e-3);
  LocalOptimizer third(weights_of(resumed), options);
  ASSERT_TRUE(third.load_state(copies(second.state()), second.num_updates(), 0).ok());
  set_random_gradients(straight, gradients);
  set_random_gradients(resumed, again);
  first.step(1e-3);
  third.step(1e-3);
  EXPECT_TRUE(same_bits(straight, resumed));
  EXPECT_TRUE(same_bits(first.state(), third.state()));
}

TEST(Schedule, WarmsUpLinearlyThenHoldsOrDecays) {
  const ScheduleOptions constant{.learning_rate = 2, .warmup_steps = 4};
  EXPECT_EQ(learning_rate_at(constant, 0, 10), 0.5);
  EXPECT_EQ(learning_rate_at(constant, 3, 10), 2);
  EXPECT_EQ(learning_rate_at(constant, 9, 10), 2);

  const ScheduleOptions linear{.learning_rate = 1, .decay = "linear", .decay_start = 0.5, .final_share = 0.2};
  EXPECT_EQ(learning_rate_at(linear, 5, 11), 1);
  EXPECT_NEAR(learning_rate_at(linear, 8, 11), 0.52, 1e-12);
  EXPECT_NEAR(learning_rate_at(linear, 10, 11), 0.2, 1e-12);

  const ScheduleOptions cosine{.learning_rate = 1, .warmup_steps = 1, .decay = "cosine"};
  EXPECT_NEAR(learning_rate_at(cosine, 6, 12), 0.5, 1e-12);
  EXPECT_NEAR(learning_rate_at(cosine, 11, 12), 0, 1e-12);
}

TEST(Schedule, ASingleStepRunsAtThePeak) {
  EXPECT_EQ(learning_rate_at({.learning_rate = 3, .decay = "cosine"}, 0, 1), 3);
}

}  // namespace
}  // namespace carnot
