// Activation checkpointing: the same gradients from less memory.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "testing/counting_allocator.h"
#include "testing/packed_batch.h"

namespace carnot {
namespace {

using namespace carnot::testing;  // NOLINT: the builders of this test

/// With adapters, the input of the first layer is frozen.
Model make(const std::string& family, at::ScalarType type, int rank, int layers = 3) {
  Model model(small_decoder(family, layers), 5, at::TensorOptions().dtype(type), 0.3);
  if (rank == 0) return model;
  model.add_adapters({.rank = rank}, 11);
  const at::NoGradGuard no_grad;
  for (const NamedTensor& adapter : model.adapters()) adapter.tensor.add_(0.05);
  return model;
}

TEST(ActivationCheckpointing, GivesTheSameBitsInLossAndGradients) {
  at::set_num_threads(1);  // LibTorch's threads spin, which is slow next to other programs
  for (const std::string& family : model_family_names())
    for (const int rank : {0, 4})
      for (const auto& [type, kernels] :
           {std::pair(at::kFloat, KernelChoice::Own), std::pair(at::kDouble, KernelChoice::Own),
            std::pair(at::kBFloat16, KernelChoice::Own), std::pair(at::kFloat, KernelChoice::Portable)}) {
        Model model = make(family, type, rank);
        model.choose_kernels(kernels);
        const PackedBatch batch({30, 7, 64});
        const at::Tensor loss = loss_of(model, batch).detach();
        const auto expected = gradients_of(model, batch);
        model.checkpoint_activations(true);
        EXPECT_TRUE(at::equal(loss_of(model, batch).detach(), loss));
        const auto got = gradients_of(model, batch);
        ASSERT_EQ(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_TRUE(at::equal(got[i], expected[i])) << model.trained()[i].name;
        // A second micro-batch is added to the first.
        model.requires_grad(true);
        loss_of(model, batch).backward();
        loss_of(model, batch).backward();
        EXPECT_TRUE(at::equal(model.trained()[1].tensor.grad(), expected[1] + expected[1]));
      }
}

TEST(ActivationCheckpointing, KeepsOneInputALayer) {
  constexpr int kLayers = 8, kRows = 600;
  const PackedBatch batch({kRows});
  std::int64_t kept[2], peak[2];
  for (const bool on : {false, true}) {
    Model model = make("qwen2", at::kFloat, 0, kLayers);
    model.checkpoint_activations(on);
    gradients_of(model, batch);  // everything is packed and cached from now on
    CountingAllocator allocator;
    model.requires_grad(true);
    const at::Tensor loss = loss_of(model, batch);
    kept[on] = allocator.live();
    loss.backward();
    peak[on] = allocator.peak();
  }
  const std::int64_t row_bytes = 48 * 4;
  EXPECT_LT(kept[1], (kLayers + 4) * kRows * row_bytes);
  EXPECT_GT(kept[0], 5 * kept[1]);
  EXPECT_GT(peak[0], 2 * peak[1]);
}

}  // namespace
}  // namespace carnot
