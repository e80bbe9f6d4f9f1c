// train/sft.h -- SFT: next-token loss on demonstrations that a script generates as needed.
//
// A step's demonstrations are a function of (seed, step): nothing is stored, and a resumed run sees the same ones.
#pragma once

#include <cstdint>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tree.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/optim/optimizer.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/train/options.h"
#include "carnot/core/train/shard_work.h"

namespace carnot {

struct SftMetrics {
  double loss = 0;          ///< mean negative log-probability of what the script said, nats per token
  double context_loss = 0;  ///< of the other tokens
  double grad_norm = 0;
  double learning_rate = 0;
  bool skipped = false;  ///< gradients were not finite: no step
  std::int64_t tokens = 0;
  std::int64_t demonstrations = 0;
};

class SftTrainer {
 public:
  struct Setting {
    const EnvironmentFactory& environment;
    const ChatFamily& chat;
    const SftOptions& options;
    const EpisodeOptions& episode;
    int micro_batch_tokens = 4096;
    std::uint64_t seed = 0;
  };

  /// All of it must outlive the trainer. The optimizer is made by `work`, and the only one. The ranks make the same
  /// demonstrations and share the work on them.
  SftTrainer(Model& model, ShardWork& work, Optimizer& optimizer, const Setting& setting)
      : model_(model), work_(work), optimizer_(optimizer), setting_(setting) {}

  /// Makes the demonstrations of step `step` (0-based) and takes one optimizer step. Fails if the environment has no
  /// script.
  Result<SftMetrics> step(std::int64_t step);

 private:
  Result<std::vector<Tree>> demonstrations(std::int64_t step) const;

  Model& model_;
  ShardWork& work_;
  Optimizer& optimizer_;
  Setting setting_;
};

}  // namespace carnot
