// train/sft.h -- SFT: next-token loss on demonstrations: rows of files, or what the environment's script plays as
// needed.
//
// A step's demonstrations are a function of (seed, step): nothing is stored, and a resumed run sees the same ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/env/epoch_order.h"
#include "carnot/core/nn/model.h"
#include "carnot/core/optim/optimizer.h"
#include "carnot/core/rollout/episode.h"
#include "carnot/core/rows/demonstration_files.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/train/options.h"
#include "carnot/core/train/shard_work.h"

namespace carnot {

struct SftMetrics {
  double loss = 0;             ///< mean negative log-probability of what was said, nats per token
  double context_loss = 0;     ///< of the other tokens; 0 where their weight is, which leaves them out
  double router_aux_loss = 0;  ///< 0 without train.router_aux_coefficient
  double grad_norm = 0;
  double learning_rate = 0;
  bool skipped = false;     ///< gradients were not finite: no step
  std::int64_t tokens = 0;  ///< of the demonstrations
  std::int64_t demonstrations = 0;
};

class SftTrainer {
 public:
  struct Setting {
    const EnvironmentFactory& environment;
    const ChatFamily& chat;
    const SftOptions& options;
    const EpisodeOptions& episode;
    const SplitDemonstrations* rows = nullptr;  ///< null or without any to train on: the script demonstrates
    int micro_batch_tokens = 4096;              ///< rows of one pass
    double router_aux_coefficient = 0;
    bool share_prefixes = true;  ///< computes what demonstrations of a pass begin with alike once
    std::uint64_t seed = 0;
  };

  /// All of it must outlive the trainer. The optimizer is made by `work`, and the only one. The ranks make the same
  /// demonstrations and share the work on them.
  SftTrainer(Model& model, ShardWork& work, Optimizer& optimizer, const Setting& setting);

  /// Takes the optimizer step number `step` (0-based) on its demonstrations: rows in another order each epoch, none
  /// twice; without rows, what the script plays. Fails if the environment has no script.
  Result<SftMetrics> step(std::int64_t step);

  /// Mean negative log-probability of what is said in the rows that are held out, nats per token. REQUIRES: some are.
  double held_out_loss() const;

 private:
  Result<std::vector<Demonstration>> scripted(std::int64_t step) const;
  std::vector<Demonstration> rows_of(std::int64_t step);

  Model& model_;
  ShardWork& work_;
  Optimizer& optimizer_;
  Setting setting_;
  std::optional<EpochOrder> order_{};          ///< of the rows
  std::int64_t next_step_ = 0, next_row_ = 0;  ///< that next_step_ begins with, counted over all epochs
};

}  // namespace carnot
