#include "carnot/core/nn/model.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/thread_pool.h"
#include "carnot/core/nn/kv_cache.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

class Decoder : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {
 protected:
  Model make() const {
    return Model(small_decoder(std::get<0>(GetParam())), 5, at::TensorOptions().dtype(std::get<1>(GetParam())), 0.3);
  }
  at::ScalarType type() const { return std::get<1>(GetParam()); }
  /// For values, and for sums, which are float32 in bfloat16.
  double tolerance() const { return type() == at::kBFloat16 ? 0.02 : sum_tolerance(); }
  double sum_tolerance() const { return type() == at::kDouble ? 1e-12 : 1e-5; }
};
INSTANTIATE_TEST_SUITE_P(Families, Decoder,
                         ::testing::Combine(::testing::ValuesIn(model_family_names()),
                                            ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16)));

/// In bfloat16, both are compared with float64 (bfloat16_model_test.cpp).
class WideDecoder : public Decoder {};
INSTANTIATE_TEST_SUITE_P(Families, WideDecoder,
                         ::testing::Combine(::testing::ValuesIn(model_family_names()),
                                            ::testing::Values(at::kFloat, at::kDouble)));

TEST_P(WideDecoder, OwnKernelsEqualLibTorchsInValuesAndGradients) {
  Model own = make(), portable = make();
  portable.choose_kernels(KernelChoice::Portable);
  const PackedBatch batch({1, 7, 40, 19});
  EXPECT_LT(relative_error(loss_of(own, batch), loss_of(portable, batch)), tolerance());
  const auto a = gradients_of(own, batch), b = gradients_of(portable, batch);
  const auto names = own.parameters();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_LT(relative_error(a[i], b[i]), 10 * tolerance()) << names[i].name;
}

TEST_P(Decoder, ItsPackedWeightsAloneGiveTheSameBits) {
  Model whole = make();
  const at::NoGradGuard no_grad;
  whole.add_adapters({.rank = 3, .alpha = 7}, 11);
  for (const NamedTensor& adapter : whole.adapters()) adapter.tensor.add_(0.05);
  Model packed = whole.clone(), portable = whole.clone();
  packed.keep_packed_weights_alone();
  for (const std::vector<int>& lengths : {std::vector<int>{5, 33, 16}, {1}}) {
    const PackedBatch batch(lengths);
    const at::Tensor hidden = batch.hidden(whole);
    EXPECT_TRUE(at::equal(batch.hidden(packed), hidden));
    EXPECT_TRUE(at::equal(packed.logits(hidden), whole.logits(hidden)));
  }
  EXPECT_THROW((void)packed.parameters(), CheckError) << "their rows are gone";
  portable.choose_kernels(KernelChoice::Portable);
  portable.keep_packed_weights_alone();
  EXPECT_EQ(portable.parameters().size(), whole.parameters().size());
}

TEST_P(Decoder, PackedEqualsOneByOneBitForBit) {
  const Model model = make();
  const at::NoGradGuard no_grad;
  const PackedBatch batch({5, 33, 16});
  const at::Tensor together = batch.hidden(model);
  for (int s = 0; s < 3; ++s) {
    const int begin = batch.plan.offsets[s], end = batch.plan.offsets[static_cast<std::size_t>(s) + 1];
    const at::Tensor alone = model.hidden(batch.tokens_T.slice(0, begin, end), batch.positions_T.slice(0, begin, end),
                                          PackedAttention{.offsets = {0, end - begin}});
    EXPECT_TRUE(at::equal(alone, together.slice(0, begin, end))) << s;
  }
}

TEST_P(Decoder, CachedDecodingEqualsTheWholeSequence) {
  for (KernelChoice kernels : {KernelChoice::Own, KernelChoice::Portable}) {
    Model model = make();
    model.choose_kernels(kernels);
    const at::NoGradGuard no_grad;
    const PackedBatch batch({40, 23});
    const at::Tensor whole = batch.hidden(model);
    KvCache cache(model.config(), {.blocks = 8, .states = 3}, model.options());
    const std::vector<std::vector<int>> blocks{{6, 1, 4}, {0, 7}};
    // Both sequences advance together, in uneven pieces: prompts first, then token by token.
    std::vector<int> past{0, 0};
    const std::vector<std::vector<int>> pieces{{18, 3}, {1, 1}, {1, 5}, {20, 14}};
    for (const auto& piece : pieces) {
      PagedAttention plan{.cache = &cache};
      std::vector<at::Tensor> tokens, positions, expected;
      int row = 0;
      for (std::size_t s = 0; s < 2; ++s) {
        const int first = batch.plan.offsets[s] + past[s];
        plan.sequences.push_back({.begin = row,
                                  .end = row + piece[s],
                                  .past = past[s],
                                  .blocks = blocks[s],
                                  .state = 2 - static_cast<int>(s)});
        tokens.push_back(batch.tokens_T.slice(0, first, first + piece[s]));
        positions.push_back(batch.positions_T.slice(0, first, first + piece[s]));
        expected.push_back(whole.slice(0, first, first + piece[s]));
        row += piece[s];
        past[s] += piece[s];
      }
      const at::Tensor hidden = model.hidden(at::cat(tokens), at::cat(positions), plan);
      if (kernels == KernelChoice::Own) {
        EXPECT_TRUE(at::equal(hidden, at::cat(expected)));
      } else {
        EXPECT_LT(relative_error(hidden, at::cat(expected)), tolerance() * 5);
      }
    }
  }
}

TEST_P(Decoder, OneThreadEqualsThreeBitForBitInGradients) {
  Model model = make();
  const PackedBatch batch({30, 64, 9, 50});
  const auto one = gradients_of(model, batch);
  set_num_threads(3);
  const auto three = gradients_of(model, batch);
  set_num_threads(1);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], three[i])) << i;
}

TEST_P(Decoder, OneMicroBatchEqualsThree) {
  Model model = make();
  const PackedBatch whole({30, 64, 9});
  const auto together = gradients_of(model, whole);
  model.requires_grad(true);
  for (std::size_t s = 0; s < 3; ++s) {
    const int begin = whole.plan.offsets[s], end = whole.plan.offsets[s + 1];
    PackedBatch part({end - begin});
    part.tokens_T = whole.tokens_T.slice(0, begin, end).contiguous();
    part.targets_T = whole.targets_T.slice(0, begin, end).contiguous();
    loss_of(model, part).backward();
  }
  const auto weights = model.parameters();
  for (std::size_t i = 0; i < weights.size(); ++i)
    EXPECT_LT(relative_error(weights[i].tensor.grad(), together[i]), sum_tolerance()) << weights[i].name;
}

TEST(Weights, AreDrawnAlikeForEveryPrecision) {
  const ModelConfig config = small_decoder("qwen2");
  const Model single(config, 9, at::TensorOptions().dtype(at::kFloat)),
      wide(config, 9, at::TensorOptions().dtype(at::kDouble));
  EXPECT_TRUE(at::equal(single.head(), wide.head().to(at::kFloat)));
  const Model other(config, 10, at::TensorOptions().dtype(at::kFloat));
  EXPECT_FALSE(at::equal(single.head(), other.head()));
}

TEST(Weights, AChangeIsSeenByTheNextCall) {
  Model model(small_decoder("qwen2"), 9, at::TensorOptions().dtype(at::kFloat));
  const at::NoGradGuard no_grad;
  const PackedBatch batch({12});
  const at::Tensor before = batch.hidden(model);
  for (const NamedTensor& weight : model.parameters()) weight.tensor.mul_(1.1);
  Model fresh = model.clone();
  const at::Tensor after = batch.hidden(model);
  EXPECT_FALSE(at::equal(before, after));
  EXPECT_TRUE(at::equal(after, batch.hidden(fresh)));
}

TEST(KvCacheMemory, OfALargeOneIsGivenBackAndComesBackAsZeros) {
  const ModelConfig config = small_decoder("qwen2");
  const auto options = at::TensorOptions().dtype(at::kFloat);
  const std::int64_t block = KvCache(config, {.blocks = 1}, options).bytes();
  for (const bool large : {false, true}) {
    const std::int64_t bytes = large ? std::int64_t{300} << 20 : 16 * block;
    KvCache cache(config, {.blocks = static_cast<int>(bytes / block)}, options);
    EXPECT_EQ(KvCache::is_given_back(cache.bytes()), large);
    for (const at::Tensor& tensor : {cache.keys(0), cache.values(config.num_layers - 1)}) tensor.select(0, 3).fill_(1);
    cache.give_back_memory();
    for (const at::Tensor& tensor : {cache.keys(0), cache.values(config.num_layers - 1)}) {
      EXPECT_EQ(tensor.select(0, 3).min().item<float>(), large ? 0 : 1);
      tensor.select(0, 3).fill_(2);
      EXPECT_EQ(tensor.select(0, 3).min().item<float>(), 2);
    }
  }
}

}  // namespace
}  // namespace carnot
