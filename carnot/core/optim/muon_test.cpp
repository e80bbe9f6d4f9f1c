#include "carnot/core/optim/muon.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/optim/local_optimizer.h"
#include "reference/muon.h"
#include "testing/paths.h"
#include "testing/weights_of.h"

namespace carnot {
namespace {

using ::carnot::testing::weights_of;

at::Tensor normal_tensor(RandomStream& random, at::IntArrayRef shape, at::ScalarType dtype) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.mutable_data_ptr<double>()[i] = random.normal();
  return tensor.to(dtype);
}

/// Matrices of both orientations, one larger than a kernel's chunk, and what AdamW updates.
Optimizer::Tensors mixed_weights(at::ScalarType dtype) {
  RandomStream random(1);
  return {{"wide", normal_tensor(random, {70, 300}, dtype)}, {"tall", normal_tensor(random, {37, 5}, dtype)},
          {"table", normal_tensor(random, {11, 8}, dtype)},  {"bias", normal_tensor(random, {9}, dtype)},
          {"empty", normal_tensor(random, {0, 4}, dtype)},   {"adapter", normal_tensor(random, {2, 600}, dtype)}};
}

void set_gradients(const Optimizer::Tensors& weights, int update) {
  RandomStream random(100 + static_cast<std::uint64_t>(update));
  for (const auto& [name, tensor] : weights)
    tensor.mutable_grad() = normal_tensor(random, tensor.sizes(), tensor.scalar_type());
}

Optimizer::Tensors trained(Optimizer::Tensors weights) {
  for (auto& [name, tensor] : weights) tensor = tensor.detach().clone().requires_grad_(tensor.is_floating_point());
  return weights;
}

reference::MuonMatrix numbers_of(const at::Tensor& tensor) {
  reference::MuonMatrix rows;
  for (std::int64_t i = 0; i < tensor.size(0); ++i) {
    const double* row = tensor.const_data_ptr<double>() + i * tensor.size(1);
    rows.emplace_back(row, row + tensor.size(1));
  }
  return rows;
}

TEST(Muon, EqualsTheReferenceOnMatricesAndAdamWOnAllElse) {
  const OptimizerOptions muon{.optimizer = "muon", .momentum = 0.9, .weight_decay = 0.1, .max_grad_norm = 1e9};
  OptimizerOptions adamw = muon;
  adamw.optimizer = "adamw";
  const Optimizer::Tensors weights = trained(mixed_weights(at::kDouble)), others = trained(mixed_weights(at::kDouble));
  LocalOptimizer optimizer(weights_of(weights), muon), other(weights_of(others), adamw);
  std::map<std::string, reference::MuonMatrix> values, means;
  for (const char* name : {"wide", "tall", "adapter"}) {
    const auto found = std::ranges::find(weights, name, &std::pair<std::string, at::Tensor>::first);
    values[name] = numbers_of(found->second);
    means[name] = numbers_of(at::zeros_like(found->second));
  }
  for (int update = 1; update <= 3; ++update) {
    set_gradients(weights, update);
    set_gradients(others, update);
    for (const auto& [name, tensor] : weights)
      if (values.contains(name))
        reference::muon_step({0.02, 0.9, 0.1}, numbers_of(tensor.grad()), values[name], means[name]);
    optimizer.step(0.02);
    other.step(0.02);
    for (std::size_t w = 0; w < weights.size(); ++w) {
      const auto& [name, tensor] = weights[w];
      if (!values.contains(name)) {
        EXPECT_TRUE(at::equal(tensor, others[w].second)) << name;
        continue;
      }
      for (std::int64_t i = 0; i < tensor.numel(); ++i)
        ASSERT_NEAR(tensor.const_data_ptr<double>()[i], values[name][i / tensor.size(1)][i % tensor.size(1)], 1e-9)
            << name << " " << i << " after " << update;
    }
  }
}

TEST(Muon, EqualsWhatTorchRecorded) {
  const auto text = read_file(source_path("tests/golden/muon.json"));
  ASSERT_TRUE(text.ok());
  int compared = 0;
  for (const auto& recorded : nlohmann::json::parse(*text)) {
    const auto tensor_of = [&](const std::string& name, const nlohmann::json& numbers) {
      const auto values = numbers.get<std::vector<double>>();
      return at::tensor(at::ArrayRef<double>(values), at::kDouble)
          .reshape(at::IntArrayRef(recorded["shapes"][name].get<std::vector<std::int64_t>>()));
    };
    Optimizer::Tensors weights;
    for (const auto& [name, numbers] : recorded["start"].items())
      weights.emplace_back(name, tensor_of(name, numbers).requires_grad_());
    LocalOptimizer optimizer(weights_of(weights), {.optimizer = "muon",
                                                   .momentum = recorded["momentum"],
                                                   .weight_decay = recorded["weight_decay"],
                                                   .max_grad_norm = recorded["max_grad_norm"]});
    for (const auto& step : recorded["steps"]) {
      for (const auto& [name, tensor] : weights) tensor.mutable_grad() = tensor_of(name, step["gradients"][name]);
      optimizer.step(step["rate"]);
      for (const auto& [name, tensor] : weights)
        EXPECT_TRUE(at::allclose(tensor, tensor_of(name, step["weights"][name]), 1e-10, 1e-12)) << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 7);
}

TEST(Muon, OrthogonalisesUpToTheBandOfItsPolynomial) {
  RandomStream random(5);
  at::Tensor matrix = normal_tensor(random, {20, 33}, at::kDouble);
  orthogonalise(matrix);
  const at::Tensor gram = at::matmul(matrix, matrix.t());
  EXPECT_GT(gram.diagonal().min().item<double>(), 0.4);
  EXPECT_LT(gram.diagonal().max().item<double>(), 1.5);
  EXPECT_LT((gram - at::diag(gram.diagonal())).abs().max().item<double>(), 0.35);
  at::Tensor zeros = at::zeros({3, 2}, at::kFloat);
  orthogonalise(zeros);
  EXPECT_EQ(zeros.abs().max().item<float>(), 0);
}

TEST(Muon, OneThreadAndTwoGiveTheSameBits) {
  for (at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    std::vector<Optimizer::Tensors> results;
    for (int threads : {1, 2}) {
      set_num_threads(threads);
      results.push_back(trained(mixed_weights(dtype)));
      LocalOptimizer optimizer(weights_of(results.back()), {.optimizer = "muon", .weight_decay = 0.1});
      for (int update = 0; update < 3; ++update) {
        set_gradients(results.back(), update);
        optimizer.step(0.01);
      }
    }
    set_num_threads(1);
    for (std::size_t w = 0; w < results[0].size(); ++w)
      EXPECT_TRUE(at::equal(results[0][w].second, results[1][w].second)) << toString(dtype) << " " << w;
  }
}

TEST(Muon, ResumedFromItsStateContinuesBitForBit) {
  for (const bool master : {true, false}) {
    const OptimizerOptions options{
        .optimizer = "muon", .master_weights = master, .moments = master ? "float32" : "bfloat16"};
    const Optimizer::Tensors straight = trained(mixed_weights(at::kBFloat16));
    LocalOptimizer optimizer(weights_of(straight), options);
    for (int update = 0; update < 2; ++update) {
      set_gradients(straight, update);
      optimizer.step(0.003);
    }
    const Optimizer::Tensors resumed = trained(straight);
    LocalOptimizer continued(weights_of(resumed), options);
    ASSERT_TRUE(continued.load_state(trained(optimizer.state()), optimizer.num_updates(), 0).ok());
    for (const Optimizer::Tensors& weights : {straight, resumed}) set_gradients(weights, 2);
    optimizer.step(0.003);
    continued.step(0.003);
    for (std::size_t w = 0; w < straight.size(); ++w)
      EXPECT_TRUE(at::equal(straight[w].second, resumed[w].second)) << straight[w].first;
  }
}

TEST(Muon, KeepsOneNumberForEachElementOfAMatrix) {
  const Optimizer::Tensors weights = trained(mixed_weights(at::kFloat));
  LocalOptimizer optimizer(weights_of(weights), {.optimizer = "muon"});
  std::vector<std::string> names;
  for (const auto& [name, tensor] : optimizer.state()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"wide.momentum", "tall.momentum", "table.first_moment",
                                             "table.second_moment", "bias.first_moment", "bias.second_moment",
                                             "empty.momentum", "adapter.momentum"}));
}

}  // namespace
}  // namespace carnot
