#include "carnot/core/collectives/sharded_optimizer.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>

#include "carnot/core/base/byte_stream.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/core/optim/local_optimizer.h"
#include "carnot/ranks/process_group.h"
#include "testing/forked_ranks.h"
#include "testing/weights_of.h"

// The test's own process makes no tensor, so that it has one thread when it forks.
namespace carnot {
namespace {

using ::carnot::testing::weights_of;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kUpdates = 4;

/// Matrices that slices cut, a vector, one number, nothing.
const std::vector<std::vector<std::int64_t>> kShapes{{300, 170}, {37}, {0}, {16'384}, {1}, {5, 10'001}};

at::Tensor random_tensor(std::uint64_t seed, const std::vector<std::int64_t>& shape) {
  RandomStream random(seed);
  at::Tensor tensor = at::empty(shape);
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    tensor.mutable_data_ptr<float>()[i] = static_cast<float>(random.normal());
  return tensor;
}

struct Setting {
  at::ScalarType weights = at::kFloat;
  OptimizerOptions options{};
};

/// The last tensor keeps float32, as a critic's head may next to bfloat16 layers.
Optimizer::Tensors parameters_of(const Setting& setting) {
  Optimizer::Tensors parameters;
  for (std::size_t p = 0; p < kShapes.size(); ++p) {
    at::Tensor tensor = random_tensor(p, kShapes[p]);
    if (p + 1 < kShapes.size()) tensor = tensor.to(setting.weights);
    parameters.emplace_back("weight" + std::to_string(p), tensor.requires_grad_(true));
  }
  return parameters;
}

/// In the second update one gradient is infinite, in the third some have none.
at::Tensor gradient_of(int update, std::size_t parameter) {
  if (update == 2 && parameter % 2 == 1) return {};
  at::Tensor gradient = random_tensor(100 * (update + 1) + parameter, kShapes[parameter]);
  if (update == 1 && parameter == 5) gradient.mutable_data_ptr<float>()[7] = std::numeric_limits<float>::infinity();
  return gradient;
}

void set_gradients(const Optimizer::Tensors& parameters, int update) {
  for (std::size_t p = 0; p < parameters.size(); ++p) parameters[p].second.mutable_grad() = gradient_of(update, p);
}

void add_tensors(ByteWriter& out, const Optimizer::Tensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    out.add(name);
    out.add(std::string_view(static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()));
  }
}

void add_report(ByteWriter& out, const StepReport& report) {
  out.add(report.grad_norm);
  out.add(report.skipped);
}

/// Norms, weights and state after some updates by one optimizer that has everything.
std::string plain_bytes(const Setting& setting) {
  const Optimizer::Tensors parameters = parameters_of(setting);
  LocalOptimizer optimizer(weights_of(parameters), setting.options);
  ByteWriter out;
  for (int update = 0; update < kUpdates; ++update) {
    set_gradients(parameters, update);
    add_report(out, optimizer.step(1e-2));
  }
  add_tensors(out, parameters);
  add_tensors(out, optimizer.state());
  return sha256_hex(out.take());
}

/// The first rank's state on all ranks, as if from a file. `like` has the names and shapes.
Optimizer::Tensors read_by_all(Collectives& group, const Optimizer::Tensors& first, LocalOptimizer like) {
  Optimizer::Tensors all = like.state();
  for (std::size_t t = 0; t < all.size(); ++t) {
    std::string bytes;
    if (group.rank() == 0) {
      EXPECT_EQ(first[t].first, all[t].first);
      bytes.assign(static_cast<const char*>(first[t].second.const_data_ptr()), first[t].second.nbytes());
    }
    bytes = from_first_rank(group, bytes, all[t].first);
    if (!bytes.empty()) std::memcpy(all[t].second.mutable_data_ptr(), bytes.data(), bytes.size());
  }
  return all;
}

/// Its two halves: the second optimizer continues from the first one's state.
std::string sharded_bytes(const Setting& setting, Collectives& group) {
  const Optimizer::Tensors parameters = parameters_of(setting);
  std::vector<at::Tensor> tensors;
  for (const auto& parameter : parameters) tensors.push_back(parameter.second);
  GradientExchange exchange(group, tensors, group.size());
  auto optimizer = std::make_unique<ShardedOptimizer>(group, exchange, weights_of(parameters), setting.options);
  ByteWriter out;
  for (int update = 0; update < kUpdates; ++update) {
    // The first shard has the gradients, the others have none.
    if (group.rank() == 0) set_gradients(parameters, update);
    exchange.add_round("gradients");
    add_report(out, optimizer->step(1e-2));
    if (update != 1) continue;
    const Optimizer::Tensors state =
        read_by_all(group, optimizer->state(), LocalOptimizer(weights_of(parameters), setting.options));
    const std::int64_t updates = optimizer->num_updates(), skipped = optimizer->num_skipped();
    optimizer = std::make_unique<ShardedOptimizer>(group, exchange, weights_of(parameters), setting.options);
    if (const Status loaded = optimizer->load_state(state, updates, skipped); !loaded) return loaded.error().message;
  }
  add_tensors(out, parameters);
  ByteWriter states;
  add_tensors(states, optimizer->state());
  // The state is the first rank's alone, its bytes are where the plain optimizer's do.
  const std::string all = out.take() + from_first_rank(group, states.take(), "states");
  return sha256_hex(all);
}

std::vector<std::string> reports(int size, const std::function<std::string(Collectives&)>& body) {
  std::vector<std::string> all;
  for (const auto& rank : testing::fork_ranks(size, [&](const RankSetting& place) {
         const auto group = std::move(ProcessGroup::join(place)).value();
         const std::string report = body(*group);
         group->leave();
         return report;
       }))
    all.push_back(rank.report);
  return all;
}

TEST(ShardedOptimizer, HasTheBitsOfOneOptimizerOnAnyNumberOfRanks) {
  const std::vector<Setting> settings{
      {.weights = at::kFloat, .options = {.weight_decay = 0.1}},
      {.weights = at::kBFloat16, .options = {.weight_decay = 0.1, .moments = "bfloat16"}},
      {.weights = at::kBFloat16, .options = {.master_weights = false}},
      {.weights = at::kFloat, .options = {.optimizer = "muon", .weight_decay = 0.1}},
      {.weights = at::kBFloat16, .options = {.optimizer = "muon", .moments = "bfloat16"}},
      {.weights = at::kBFloat16, .options = {.optimizer = "muon", .master_weights = false}},
  };
  for (std::size_t s = 0; s < settings.size(); ++s) {
    const std::string plain = reports(1, [&](Collectives&) { return plain_bytes(settings[s]); }).front();
    for (const int size : {1, 2, 3})
      EXPECT_THAT(reports(size, [&](Collectives& group) { return sharded_bytes(settings[s], group); }), Each(plain))
          << "setting " << s << " on " << size << " ranks";
  }
}

TEST(ShardedOptimizer, NamesWhatDoesNotFitInAState) {
  const std::string report = reports(2, [](Collectives& group) {
                               const Optimizer::Tensors parameters{{"w", at::zeros({3, 2}).requires_grad_(true)}};
                               GradientExchange exchange(group, {parameters[0].second}, group.size());
                               ShardedOptimizer optimizer(group, exchange, weights_of(parameters), {});
                               const Status status = optimizer.load_state(
                                   {{"w.first_moment", at::zeros({2, 3})}, {"w.residual", at::zeros({3, 2})}}, 1, 0);
                               return status ? std::string("loaded") : status.error().message;
                             }).back();
  EXPECT_THAT(report, AllOf(HasSubstr("w.first_moment has shape [2, 3], expected [3, 2]"),
                            HasSubstr("w.second_moment is missing"), HasSubstr("w.residual belongs to no weight")));
}

}  // namespace
}  // namespace carnot
