#include "carnot/distributed/gradient_exchange.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "carnot/base/random.h"
#include "carnot/distributed/process_group.h"
#include "testing/forked_ranks.h"

namespace carnot {
namespace {

constexpr int kShards = 12;

/// Sizes of a small model's tensors: some longer than a slice's grain, one empty.
const std::vector<std::int64_t> kSizes{40'000, 7, 0, 16'384, 1, 50'001};

/// The gradient of one tensor in one shard: numbers of very different sizes, zeros of both signs.
std::vector<float> gradient_of(int step, int shard, std::size_t tensor) {
  RandomStream random(1000 * static_cast<std::uint64_t>(step) + 10 * static_cast<std::uint64_t>(shard) + tensor);
  std::vector<float> values(static_cast<std::size_t>(kSizes[tensor]));
  for (float& value : values) {
    value = static_cast<float>(random.normal() * std::exp(8 * random.uniform()));
    if (random.chance(0.05)) value = random.chance(0.5) ? -0.0F : 0.0F;
  }
  return values;
}

/// A shard leaves some tensors without a gradient.
bool has_gradient(int shard, std::size_t tensor) { return (shard + static_cast<int>(tensor)) % 5 != 0; }

void append_bytes(std::string& to, const std::vector<float>& values) {
  to.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

/// Plain sums from the left, over all shards.
std::string expected_sums(int steps) {
  std::string bytes;
  for (int step = 0; step < steps; ++step)
    for (std::size_t tensor = 0; tensor < kSizes.size(); ++tensor) {
      std::vector<float> sum;
      for (int shard = 0; shard < kShards; ++shard) {
        std::vector<float> values(static_cast<std::size_t>(kSizes[tensor]), 0.0F);
        if (has_gradient(shard, tensor)) values = gradient_of(step, shard, tensor);
        if (shard == 0)
          sum = values;
        else
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
      }
      append_bytes(bytes, sum);
    }
  return bytes;
}

/// All slices of the sums.
std::vector<float> finished_row(Collectives& group, GradientExchange& exchange) {
  at::Tensor row = at::empty({exchange.layout().size()});
  group.gather_slices(exchange.finish("gradients"), exchange.layout(), row, "slices");
  const float* values = row.const_data_ptr<float>();
  return {values, values + row.numel()};
}

/// The same by an exchange, as this rank sees it.
std::string exchanged_sums(Collectives& group, int steps) {
  std::vector<at::Tensor> parameters;
  for (const std::int64_t size : kSizes) parameters.push_back(at::zeros({size}).requires_grad_(true));
  GradientExchange exchange(group, parameters, kShards);
  std::string bytes;
  for (int step = 0; step < steps; ++step) {
    for (int round = 0; round < exchange.num_rounds(); ++round) {
      const int shard = exchange.shard_of_round(round);
      for (std::size_t tensor = 0; tensor < kSizes.size(); ++tensor) {
        if (!has_gradient(shard, tensor)) continue;
        const std::vector<float> values = gradient_of(step, shard, tensor);
        at::Tensor gradient = at::empty({kSizes[tensor]});
        std::copy(values.begin(), values.end(), gradient.mutable_data_ptr<float>());
        parameters[tensor].mutable_grad() = gradient;
      }
      exchange.add_round("gradients");
      for (const at::Tensor& parameter : parameters) EXPECT_FALSE(parameter.grad().defined());
    }
    append_bytes(bytes, finished_row(group, exchange));
  }
  return bytes;
}

TEST(GradientExchange, GivesTheBitsOfAPlainSumOnAnyNumberOfRanks) {
  const std::string expected = expected_sums(2);
  for (const int size : {1, 2, 3, 4}) {
    const auto ranks = testing::fork_ranks(size, [](const RankSetting& setting) {
      const auto group = std::move(ProcessGroup::join(setting)).value();
      const std::string bytes = exchanged_sums(*group, 2);
      group->leave();
      return bytes;
    });
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank.report.size(), expected.size()) << rank.report.substr(0, 200);
      EXPECT_TRUE(rank.report == expected) << size << " ranks";
    }
  }
}

TEST(GradientExchange, OfFloat64ParametersSumsInFloat64) {
  const auto ranks = testing::fork_ranks(1, [](const RankSetting&) {
    OneProcess alone;
    const at::Tensor parameter = at::zeros({1}, at::kDouble).requires_grad_(true);
    GradientExchange exchange(alone, {parameter}, 2);
    for (const double value : {1e-12, 1.0}) {
      parameter.mutable_grad() = at::full({1}, value, at::kDouble);
      exchange.add_round("gradients");
    }
    return std::string(exchange.finish("gradients").item<double>() == 1e-12 + 1.0 ? "right" : "wrong");
  });
  EXPECT_EQ(ranks[0].report, "right");
}

TEST(GradientExchange, OfTheFastKindGivesTheSumUpToRoundingAndTheSameBitsToAllRanks) {
  // Small whole numbers add up exactly in any order.
  for (const int shards : {2, 4}) {
    const auto ranks = testing::fork_ranks(2, [&](const RankSetting& setting) {
      const auto group = std::move(ProcessGroup::join(setting)).value();
      const at::Tensor first = at::zeros({3}).requires_grad_(true), second = at::zeros({2}).requires_grad_(true);
      GradientExchange exchange(*group, {first, second}, shards, ShardSum::Fast);
      for (int round = 0; round < exchange.num_rounds(); ++round) {
        const float value = static_cast<float>(1 << exchange.shard_of_round(round));
        first.mutable_grad() = first.grad().defined() ? first.grad() + value : at::full({3}, value);
        exchange.add_round("gradients");
      }
      const std::vector<float> row = finished_row(*group, exchange);
      group->leave();
      return std::to_string(row[0] + row[1] + row[2]) + " " + std::to_string(row[3] + row[4]);
    });
    const std::string expected = std::to_string(3.0F * static_cast<float>((1 << shards) - 1)) + " 0.000000";
    for (const auto& rank : ranks) EXPECT_EQ(rank.report, expected) << shards << " shards";
  }
}

}  // namespace
}  // namespace carnot
