// engine/engine.h -- batched generation: many token sequences, one forward pass per step. Knows ids, never text.
//
// A sequence is a handle to tokens, their KV blocks and, in models with recurrent layers, the state after them. Each
// step() is one forward over the rows that are due: prompt or observation tokens to prefill, and one token of each
// sequence that samples. Sequences start, stop, fork and end independently; no one waits for another, except for
// memory.
//
// A sampled token is a function of its sequence's tokens, its draw key and the weights. Batch size, order of events,
// evictions and threads cannot change it, provided that the runner's forward pass is batch-invariant (model_runner.h).
//
// The scheduler (scheduler.h) chooses the rows, the block manager (cache/block_manager.h) knows who holds which block
// and state of the cache, the model runner computes. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/base/fields.h"
#include "carnot/core/cache/block_manager.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/engine/model_runner.h"
#include "carnot/core/engine/sampling.h"
#include "carnot/core/engine/scheduler.h"
#include "carnot/core/engine/sequence.h"

namespace carnot {

struct EngineOptions {
  int max_batch_tokens = 1024;  ///< rows of one forward
  int logits_megabytes = 64;    ///< memory of the logits that exist at one time
  int drawable_tokens = 0;      ///< ids from here on are never drawn (padding of the vocabulary); 0: all are drawn

  void fields(FieldVisitor& visit);
};

/// What a token did to its request.
enum class SampleEnd : std::uint8_t { GoesOn, StopToken, MaxTokens };

struct SampledToken {
  SequenceId sequence = 0;
  TokenDraw draw{};
  SampleEnd end = SampleEnd::GoesOn;
  std::vector<TokenLogProb> likeliest{};  ///< as many as the request asks for, most likely first
};

/// The answer of Engine::score(), whose fork is gone.
struct ScoredAnswer {
  SequenceId sequence = 0;
  std::vector<float> log_probs{};  ///< by token of the answer; empty: it does not fit into the cache
};

struct StepResult {
  std::vector<SampledToken> tokens{};
  std::vector<ScoredAnswer> scores{};
  std::vector<SequenceId> too_long{};  ///< requests dropped: the sequence alone does not fit into the cache
};

/// Sums since the engine was made.
struct EngineMetrics {
  std::int64_t steps = 0;
  std::int64_t rows = 0;  ///< computed, prefill and decode
  std::int64_t sampled_tokens = 0;
  std::int64_t evictions = 0;
  double seconds_scheduling = 0;
  double seconds_forward = 0;
  double seconds_sampling = 0;  ///< logits included
};

class Engine {
 public:
  /// The runner must outlive the engine.
  Engine(ModelRunner& runner, const EngineOptions& options);

  /// A sequence of these tokens, prefilled by the steps to come. REQUIRES: not empty; ids of the vocabulary.
  SequenceId start(std::span<const TokenId> tokens);

  /// A sequence of the first `num_tokens` tokens of another; blocks that are computed are shared. Where the model has
  /// states, one of all the other's computed tokens is shared, too, and copied before it is advanced; one of fewer does
  /// not exist, and the fork is computed from its start. So it is where window blocks it needs were given up. REQUIRES:
  /// 0 < num_tokens.
  SequenceId fork(SequenceId parent, int num_tokens);

  /// Measures an answer after the first `num_tokens` tokens of a sequence, on a fork of them that lives until a step's
  /// result says how likely each token of the answer is; release() ends it before. It is computed in the forwards that
  /// others decode in. REQUIRES: 0 < num_tokens; an answer; ids of the vocabulary.
  SequenceId score(SequenceId parent, int num_tokens, const AnswerRequest& request);

  /// Appends tokens from outside to the sequence. REQUIRES: it is not sampling; ids of the vocabulary.
  void append(SequenceId sequence, std::span<const TokenId> tokens);

  /// Samples after the sequence's last token until the request ends. REQUIRES: it is not sampling.
  void sample(SequenceId sequence, SampleRequest request);

  /// Ends the request now; what was sampled stays. No effect where none runs.
  void stop_sampling(SequenceId sequence);

  /// Forgets the sequence and gives its blocks and its state back.
  void release(SequenceId sequence);

  /// Gives back the blocks and states of all sequences, which are computed again when they go on: for weights that have
  /// changed.
  void forget_computed();

  std::span<const TokenId> tokens(SequenceId sequence) const;

  /// No prefill is due: a fork shares all there is to share. (The last token is computed where it samples.)
  bool prefilled(SequenceId sequence) const;

  /// Anything for step() to do.
  bool has_work() const;

  /// One forward. Valid until the next call. REQUIRES: has_work().
  const StepResult& step();

  const EngineMetrics& metrics() const { return metrics_; }
  int free_blocks() const { return manager_.blocks.num_free(); }
  int free_states() const { return manager_.states.num_free(); }
  int free_window_blocks() const { return manager_.window_blocks.num_free(); }

 private:
  void check_ids(std::span<const TokenId> tokens) const;
  at::Tensor forward();
  void measure_rows(const at::Tensor& hidden_TH);
  SampledToken draw_next(SequenceId id, const LogitRow& row) const;
  void deliver(SampledToken token);
  void deliver_score(SequenceId id, float log_prob);
  void end_scores_that_do_not_fit();

  ModelRunner& runner_;
  EngineOptions options_;
  BlockManager manager_;
  SequenceSet sequences_;
  Scheduler scheduler_;

  ScheduledStep scheduled_;
  std::vector<SampledToken> draws_;
  std::vector<float> scored_;
  StepResult result_;
  EngineMetrics metrics_;
};

}  // namespace carnot
