// rollout/engine.h -- batched generation: many token sequences, one forward a step. Knows ids, never text.
//
// A sequence is a handle to tokens and their KV blocks. Each step() is one forward over the rows that are due:
// prompt or observation tokens to prefill, and one token of each sequence that samples. Sequences start, stop, fork
// and end independently; no one waits for another, except for memory.
//
// A sampled token is a function of its sequence's tokens and its draw key. Batch size, order of events, evictions and
// threads cannot change it (as far as the policy's forward keeps rows apart, see policy.h).
//
// Memory: a sequence that finds no free block waits. Idle sequences, then younger ones, are evicted to let the oldest
// go on; an evicted sequence keeps its tokens and is computed again later. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/base/random.h"
#include "carnot/cache/block_table.h"
#include "carnot/data/tokens.h"
#include "carnot/rollout/policy.h"
#include "carnot/rollout/sampling.h"

namespace carnot {

struct EngineOptions {
  int max_batch_tokens = 1024;  ///< rows of one forward
  int logits_megabytes = 64;    ///< memory of the logits that exist at one time
  int drawable_tokens = 0;      ///< ids from here on are never drawn (padding of the vocabulary); 0: all are drawn

  void fields(FieldVisitor& visit);
};

/// Names a live sequence; used again after release().
using SequenceId = int;

struct SampleRequest {
  SamplingOptions sampling{};
  DrawKey key{};  ///< position is that of the first token; it counts up
  int max_tokens = 1;
  std::vector<TokenId> stop_tokens{};  ///< any of them ends the request; it stays in the sequence
  int candidates = 0;                  ///< of TokenDraw::candidate_entropy; 0: not measured
  int candidate_tokens = 0;            ///< of the request, the first so many tokens are measured
};

/// What a token did to its request.
enum class SampleEnd : std::uint8_t { GoesOn, StopToken, MaxTokens };

struct SampledToken {
  SequenceId sequence = 0;
  TokenDraw draw{};
  SampleEnd end = SampleEnd::GoesOn;
};

struct StepResult {
  std::vector<SampledToken> tokens{};
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
  /// The policy must outlive the engine.
  Engine(Policy& policy, const EngineOptions& options);

  /// A sequence of these tokens, prefilled by the steps to come. REQUIRES: not empty; ids of the policy's vocabulary.
  SequenceId start(std::span<const TokenId> tokens);

  /// A sequence of the first `num_tokens` tokens of another; blocks that are computed are shared. REQUIRES: 0 <
  /// num_tokens.
  SequenceId fork(SequenceId parent, int num_tokens);

  /// Tokens from outside behind the sequence. REQUIRES: it is not sampling; ids of the vocabulary.
  void append(SequenceId sequence, std::span<const TokenId> tokens);

  /// Samples behind the sequence's last token until the request ends. REQUIRES: it is not sampling.
  void sample(SequenceId sequence, SampleRequest request);

  /// Ends the request now; what was sampled stays. No effect where none runs.
  void stop_sampling(SequenceId sequence);

  /// Forgets the sequence and gives its blocks back.
  void release(SequenceId sequence);

  std::span<const TokenId> tokens(SequenceId sequence) const;

  /// No prefill is due: a fork shares all there is to share. (The last token is computed where it samples.)
  bool prefilled(SequenceId sequence) const;

  /// Anything for step() to do.
  bool has_work() const;

  /// One forward. Valid until the next call. REQUIRES: has_work().
  const StepResult& step();

  const EngineMetrics& metrics() const { return metrics_; }
  int free_blocks() const { return pool_.num_free(); }

 private:
  struct Sequence {
    bool live = false;
    bool sampling = false;
    bool prefilling = false;
    int sampled = 0;  ///< by the present request
    SampleRequest request{};
    std::vector<TokenId> tokens{};
    BlockTable table{};  ///< over the computed tokens; never the last token, until it samples

    bool runnable() const { return sampling || prefilling; }
    int due() const { return static_cast<int>(tokens.size()) - table.num_tokens - (sampling ? 0 : 1); }
  };
  struct SampleRow {
    SequenceId sequence = 0;
    int row = 0;
  };

  Sequence& at(SequenceId sequence);
  const Sequence& at(SequenceId sequence) const;
  SequenceId add(Sequence sequence);
  void check_ids(std::span<const TokenId> tokens) const;
  void schedule();
  int room_for(std::size_t index, int wanted);
  void make_room(std::size_t index);
  void evict(Sequence& sequence, int kept_tokens);
  void add_rows(SequenceId id, int count);
  at::Tensor forward();
  void sample_rows(const at::Tensor& hidden_TH);
  TokenDraw draw_next(const Sequence& sequence, std::span<float> logits) const;
  void deliver(SequenceId id, const TokenDraw& draw);

  Policy& policy_;
  EngineOptions options_;
  BlockPool pool_;
  std::vector<Sequence> sequences_;
  std::vector<SequenceId> unused_;
  std::vector<SequenceId> order_;  ///< live sequences, oldest first

  std::vector<std::int64_t> row_tokens_, row_positions_;
  std::vector<PagedRows> rows_;
  std::vector<SampleRow> sample_rows_;
  std::vector<TokenDraw> draws_;
  StepResult result_;
  EngineMetrics metrics_;
};

}  // namespace carnot
