// serving/tinker/trained_adapter.h -- a LoRA adapter that a client trains step by step over weights that all clients
// share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/optim/optimizer.h"
#include "carnot/core/optim/options.h"
#include "carnot/serving/tinker/requests.h"
#include "carnot/serving/tinker/wire.h"

namespace carnot {

/// Tinker's adapters have alpha = 32, whatever their rank.
inline constexpr double kTinkerAlpha = 32;

/// Those of the attention and the MLP, as the request has it.
LoraOptions lora_of(const CreateModelRequest& request);

class TrainedAdapter {
 public:
  /// A fresh adapter, which changes nothing. `base`, which must outlive it, gives its weights, which stay as they are.
  /// `micro_batch_tokens`: rows of a forward pass; a longer datum has its own.
  TrainedAdapter(const Model& base, const LoraOptions& lora, std::uint64_t seed, int micro_batch_tokens);

  const LoraOptions& lora() const { return model_.lora(); }

  /// Adds the gradients of the loss (losses.h, method_loss.h) to those since the last optim_step(), unless
  /// `forward_only`. Of the losses of losses.h the output has
  /// `logprobs` of all targets and `elementwise_loss`, by datum; its metric is `loss:sum`. What data begin with alike
  /// is computed once. The error says what is wrong with the request; then no gradient was added.
  Result<ForwardBackwardOutput> forward_backward(const ForwardBackwardRequest& request);

  /// One update with the gradients so far, which are cleared. Metrics: the gradient's norm before clipping, and whether
  /// the update was left out since it was not finite.
  std::map<std::string, double> optim_step(const AdamParams& adam);

  /// An independent copy of the policy of this moment.
  Model snapshot() const { return model_.frozen(); }

  /// Writes the adapter as a PEFT folder that names `base`, and with `optimizer` what an optimizer continues from.
  /// REQUIRES: an empty folder.
  Status save(const std::filesystem::path& folder, const std::string& base, bool optimizer);
  /// Takes weights, and with `optimizer` the optimizer's state, from a folder that save() wrote; without it, the
  /// optimizer is a fresh one. Nothing changes on failure.
  Status load(const std::filesystem::path& folder, bool optimizer);

 private:
  void use(const AdamParams& adam);

  const Model& base_;
  Model model_;
  OptimizerOptions options_;
  std::unique_ptr<Optimizer> optimizer_;
  int micro_batch_tokens_;
};

}  // namespace carnot
