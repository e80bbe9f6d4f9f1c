// engine/scheduler.h -- which rows the next forward pass computes, and which sequences give up cache blocks for them.
//
// Oldest sequences first; what does not fit waits. The oldest runnable sequence may evict all others, so every step
// advances. An evicted sequence keeps its tokens and is computed again later. A sequence that has nothing computed
// shares the blocks of the one that begins most like it, so that a system prompt is computed once for all tasks. Where
// sequences have states (cache/block_table.h), it shares all that another has computed, if it begins with that, or
// nothing; and what is evicted is computed again from its start. Where window blocks are short, sequences first give up
// those that left their window.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "carnot/core/cache/block_manager.h"
#include "carnot/core/engine/sequence.h"
#include "carnot/core/nn/attention_plan.h"

namespace carnot {

/// A row of the forward whose logits are sampled from.
struct SampleRow {
  SequenceId sequence = 0;
  int row = 0;
};

/// A row of the forward whose logits say how likely a token that is there already was.
struct ScoreRow {
  SequenceId sequence = 0;
  int row = 0;
  TokenId target = 0;
};

/// One forward. A sequence's rows are consecutive and in reading order.
struct ScheduledStep {
  std::vector<std::int64_t> tokens{}, positions{};  ///< of every row
  std::vector<PagedRows> sequences{};
  std::vector<SampleRow> samples{};
  std::vector<ScoreRow> scores{};
  std::vector<BlockCopy> copies{};         ///< to perform before the forward, in this order
  std::vector<BlockCopy> window_copies{};  ///< likewise
  std::vector<StateCopy> state_copies{};   ///< likewise
  std::vector<SequenceId> too_long{};      ///< no longer runnable: the sequence alone does not fit into the cache

  void clear();
};

class Scheduler {
 public:
  /// Both must outlive the scheduler.
  Scheduler(SequenceSet& sequences, BlockManager& manager, int max_batch_tokens);

  /// Writes the next step over `step`. Tables grow as if its rows had been computed.
  void schedule(ScheduledStep& step);

  std::int64_t num_evictions() const { return num_evictions_; }

 private:
  void share_computed(SequenceId id);
  int tokens_to_share(const Sequence& from, std::span<const TokenId> wanted) const;
  bool can_start(const Sequence& sequence);
  int room_for(std::size_t index, int wanted);
  void leave_behind();
  void make_room(std::size_t index);
  void evict(Sequence& sequence, int kept_tokens);
  void add_rows(SequenceId id, int count, ScheduledStep& step);

  SequenceSet& sequences_;
  BlockManager& manager_;
  int max_batch_tokens_;
  std::int64_t num_evictions_ = 0;
};

}  // namespace carnot
