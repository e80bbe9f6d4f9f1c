#include "carnot/core/collectives/gradient_exchange.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>

#include "carnot/core/base/file.h"
#include "carnot/core/base/random.h"
#include "carnot/ranks/process_group.h"
#include "testing/forked_ranks.h"

namespace carnot {
namespace {

constexpr int kShards = 12;

/// Sizes of tensors: some longer than a chunk, one longer than a bucket, one empty.
const std::vector<std::int64_t> kSizes{40'000, 7, 0, 1'100'000, 16'384, 1, 50'001};

/// The gradient of one tensor in one shard: numbers of very different sizes, zeros of both signs.
std::vector<float> gradient_of(int step, int shard, std::size_t tensor) {
  RandomStream random(1000 * static_cast<std::uint64_t>(step) + 10 * static_cast<std::uint64_t>(shard) + tensor);
  std::vector<float> drawn(4099);
  for (float& value : drawn) {
    value = static_cast<float>(random.normal() * std::exp(8 * random.uniform()));
    if (random.chance(0.05)) value = random.chance(0.5) ? -0.0F : 0.0F;
  }
  std::vector<float> values(static_cast<std::size_t>(kSizes[tensor]));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = drawn[i % drawn.size()] * static_cast<float>(1 + i / drawn.size());
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
  const FlatLayout& layout = exchange.layout();
  const at::Tensor row = at::empty({layout.size()}), slice = exchange.finish();
  for (int bucket = 0; bucket < layout.num_buckets(); ++bucket) {
    const IndexRange own = layout.place_in_slice(bucket, group.rank());
    const at::Tensor gathered =
        group.begin_gather(slice.slice(0, own.begin, own.end).contiguous(), layout.part_sizes(bucket), "sums")
            ->result();
    for (int rank = 0; rank < group.size(); ++rank) {
      const IndexRange part = layout.part(bucket, rank);
      row.slice(0, part.begin, part.end).copy_(gathered[rank].slice(0, 0, part.size()));
    }
  }
  const float* values = row.const_data_ptr<float>();
  return {values, values + row.numel()};
}

at::Tensor as_tensor(const std::vector<float>& values) {
  at::Tensor tensor = at::empty({static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor;
}

/// How a shard's gradients come to be in the parameters.
enum class Arrival { Given, FromTheLastPass };

/// The last of two passes leaves them, last parameters first on some ranks and first ones on others: what a rank begins
/// must not depend on it.
void pass_backward(GradientExchange& exchange, const std::vector<at::Tensor>& parameters, int step, int shard) {
  std::vector<std::size_t> order;
  for (std::size_t tensor = 0; tensor < kSizes.size(); ++tensor)
    if (has_gradient(shard, tensor)) order.push_back(tensor);
  if (shard % 2 == 0) std::reverse(order.begin(), order.end());
  exchange.expect_last_pass([&] { exchange.begin_final("gradients"); });
  for (const std::size_t tensor : order) {
    const at::Tensor gradient = as_tensor(gradient_of(step, shard, tensor));
    // d sum(w g) / d w is g to the bit.
    (parameters[tensor] * gradient).sum().backward();
  }
}

/// The same by an exchange, as this rank sees it.
std::string exchanged_sums(Collectives& group, int steps, Arrival arrival) {
  std::vector<at::Tensor> parameters;
  for (const std::int64_t size : kSizes) parameters.push_back(at::zeros({size}).requires_grad_(true));
  GradientExchange exchange(group, parameters, kShards);
  std::string bytes;
  for (int step = 0; step < steps; ++step) {
    for (int round = 0; round < exchange.num_rounds(); ++round) {
      const int shard = exchange.shard_of_round(round);
      // Where a shard has no work, nothing is expected.
      if (arrival == Arrival::FromTheLastPass && shard % 5 != 3) {
        pass_backward(exchange, parameters, step, shard);
      } else {
        for (std::size_t tensor = 0; tensor < kSizes.size(); ++tensor)
          if (has_gradient(shard, tensor))
            parameters[tensor].mutable_grad() = as_tensor(gradient_of(step, shard, tensor));
      }
      exchange.add_round("gradients");
      for (const at::Tensor& parameter : parameters) EXPECT_FALSE(parameter.grad().defined());
    }
    append_bytes(bytes, finished_row(group, exchange));
  }
  return bytes;
}

void expect_plain_sums(Arrival arrival) {
  const std::string expected = sha256_hex(expected_sums(2));
  for (const int size : {1, 2, 3, 4}) {
    const auto ranks = testing::fork_ranks(size, [&](const RankSetting& setting) {
      const auto group = std::move(ProcessGroup::join(setting)).value();
      const std::string bytes = sha256_hex(exchanged_sums(*group, 2, arrival));
      group->leave();
      return bytes;
    });
    for (const auto& rank : ranks) EXPECT_EQ(rank.report, expected) << size << " ranks";
  }
}

TEST(GradientExchange, GivesTheBitsOfAPlainSumOnAnyNumberOfRanks) { expect_plain_sums(Arrival::Given); }

TEST(GradientExchange, GivesTheSameBitsWhereGradientsLeaveDuringTheBackwardPass) {
  expect_plain_sums(Arrival::FromTheLastPass);
}

TEST(GradientExchange, HoldsAGradientNoLongerThanUntilItLeaves) {
  const auto ranks = testing::fork_ranks(2, [](const RankSetting& setting) {
    const auto group = std::move(ProcessGroup::join(setting)).value();
    const std::int64_t bucket = bucket_elements(2);
    const at::Tensor first = at::zeros({bucket}).requires_grad_(true), last = at::zeros({bucket}).requires_grad_(true);
    GradientExchange exchange(*group, {first, last}, 2);
    std::string held;
    const auto note = [&] {
      held += std::to_string(first.grad().defined()) + std::to_string(last.grad().defined()) + " ";
    };
    exchange.expect_last_pass([&] {
      note();
      held += exchange.begin_final("gradients") ? "all " : "some ";
      note();
    });
    last.sum().backward();
    first.sum().backward();
    exchange.add_round("gradients");
    exchange.finish();
    (last.sum() + first.sum()).backward();  // and no one waits for this one
    note();
    group->leave();
    return held;
  });
  for (const auto& rank : ranks) EXPECT_EQ(rank.report, "01 some 00 10 all 00 11 ");
}

TEST(GradientExchange, WhoseOtherRankIsKilledEnds) {
  const auto ranks = testing::fork_ranks(2, [](const RankSetting& setting) {
    const auto group = std::move(ProcessGroup::join(setting, {.lost_after_seconds = 30, .beat_seconds = 0.1})).value();
    std::vector<at::Tensor> parameters;
    for (int i = 0; i < 8; ++i) parameters.push_back(at::zeros({bucket_elements(2)}).requires_grad_(true));
    GradientExchange exchange(*group, parameters, 2);
    if (setting.rank == 1) raise(SIGKILL);
    at::Tensor loss = at::zeros({});
    for (const at::Tensor& parameter : parameters) loss = loss + parameter.sum();
    exchange.expect_last_pass([&] { exchange.begin_final("gradients of step 1"); });
    try {
      loss.backward();
      exchange.add_round("gradients of step 1");
      exchange.finish();
    } catch (const GroupLost& lost) {
      return std::string(lost.what());
    }
    return std::string("not lost");
  });
  EXPECT_EQ(ranks[0].report.substr(0, 15), "rank 1 on host ");
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
    return std::string(exchange.finish().item<double>() == 1e-12 + 1.0 ? "right" : "wrong");
  });
  EXPECT_EQ(ranks[0].report, "right");
}

TEST(GradientExchange, OfTheFastKindGivesTheSumUpToRoundingAndTheSameBitsToAllRanks) {
  // Small integers add up exactly in any order.
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
