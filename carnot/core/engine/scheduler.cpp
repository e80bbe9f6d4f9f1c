#include "carnot/core/engine/scheduler.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {

void ScheduledStep::clear() {
  tokens.clear();
  positions.clear();
  sequences.clear();
  samples.clear();
  scores.clear();
  copies.clear();
  window_copies.clear();
  state_copies.clear();
  too_long.clear();
}

Scheduler::Scheduler(SequenceSet& sequences, BlockManager& manager, int max_batch_tokens)
    : sequences_(sequences), manager_(manager), max_batch_tokens_(max_batch_tokens) {
  CARNOT_CHECK_GE(max_batch_tokens, 1);
}

void Scheduler::schedule(ScheduledStep& step) {
  step.clear();
  const auto order = sequences_.oldest_first();
  for (const SequenceId id : order) sequences_.at(id).scheduled = false;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int rows_left = max_batch_tokens_ - static_cast<int>(step.tokens.size());
    if (rows_left == 0) break;
    Sequence& sequence = sequences_.at(order[i]);
    if (!sequence.runnable()) continue;
    if (blocks_for(sequence.num_tokens()) > manager_.blocks.size()) {
      sequence.sampling = sequence.prefilling = false;
      step.too_long.push_back(order[i]);
      continue;
    }
    // A sequence without a block starts only where all of it fits, lest many half-computed ones evict each other.
    if (sequence.table.blocks.empty()) {
      share_computed(order[i]);
      if (!can_start(sequence) && !step.sequences.empty()) {
        release(manager_, sequence.table);
        continue;
      }
    }
    const int count = room_for(i, std::min(sequence.due(), rows_left));
    if (count > 0) add_rows(order[i], count, step);
  }
}

// Not all that is due: a runnable sequence has a row in some step.
void Scheduler::share_computed(SequenceId id) {
  Sequence& sequence = sequences_.at(id);
  int most = sequence.due() - 1;
  if (sequence.scores()) most = std::min(most, sequence.scored_begin - 1);
  const BlockTable* most_alike = nullptr;
  int shared = 0;
  for (const SequenceId other : sequences_.oldest_first()) {
    const Sequence& from = sequences_.at(other);
    if (std::min(most, from.table.num_tokens) < shared + (manager_.size.has_states() ? 1 : kBlockTokens)) continue;
    const int alike = tokens_to_share(from, std::span(sequence.tokens).first(static_cast<std::size_t>(most)));
    if (alike <= shared) continue;
    shared = alike;
    most_alike = &from.table;
  }
  if (most_alike != nullptr) sequence.table = fork(manager_, *most_alike, shared);
}

// Whole blocks, which nothing is added to. They may be computed in this very step: a forward writes a layer's keys and
// values before it reads any. A state is that of all computed tokens, and this step's forward is yet to advance it over
// those that are scheduled.
int Scheduler::tokens_to_share(const Sequence& from, std::span<const TokenId> wanted) const {
  const auto computed = std::span(from.tokens).first(static_cast<std::size_t>(from.table.num_tokens));
  const int alike = static_cast<int>(std::ranges::mismatch(computed, wanted).in1 - computed.begin());
  if (manager_.size.has_states()) return alike == from.table.num_tokens && !from.scheduled ? alike : 0;
  const int whole = alike / kBlockTokens * kBlockTokens;
  return can_continue_at(manager_, from.table, whole) ? whole : 0;
}

bool Scheduler::can_start(const Sequence& sequence) {
  const int missing = sequence.num_tokens() + 1 - sequence.table.num_tokens;
  if (fits_in_parts(manager_, sequence.table, missing)) return true;
  leave_behind();
  return fits_in_parts(manager_, sequence.table, missing);
}

// How many of the `wanted` next tokens of the sequence can be computed now, after evicting others if none could.
int Scheduler::room_for(std::size_t index, int wanted) {
  const Sequence& sequence = sequences_.at(sequences_.oldest_first()[index]);
  if (!fits(manager_, sequence.table, wanted)) leave_behind();
  if (!fits(manager_, sequence.table, 1)) make_room(index);
  return std::min(wanted, tokens_that_fit(manager_, sequence.table));
}

// Rows of this step still see what their sequences have.
void Scheduler::leave_behind() {
  if (!manager_.size.has_window()) return;
  for (const SequenceId id : sequences_.oldest_first())
    if (Sequence& sequence = sequences_.at(id); !sequence.scheduled) carnot::leave_behind(manager_, sequence.table);
}

// Until one token of the sequence at `index` fits: idle sequences give up what only they hold, then younger ones do;
// then idle and younger ones give up everything. Rows of this step keep what they have.
void Scheduler::make_room(std::size_t index) {
  const auto order = sequences_.oldest_first();
  const Sequence& needy = sequences_.at(order[index]);
  for (const bool keep_shared : {true, false}) {
    for (const bool idle : {true, false}) {
      for (std::size_t i = order.size(); i-- > (idle ? 0 : index + 1);) {
        if (fits(manager_, needy.table, 1)) return;
        Sequence& victim = sequences_.at(order[i]);
        if (i == index || victim.scheduled || victim.runnable() == idle) continue;
        evict(victim, keep_shared ? tokens_in_shared_blocks(manager_, victim.table) : 0);
      }
    }
  }
}

void Scheduler::evict(Sequence& sequence, int kept_tokens) {
  if (sequence.table.num_tokens == kept_tokens) return;
  truncate(manager_, sequence.table, kept_tokens);
  ++num_evictions_;
}

void Scheduler::add_rows(SequenceId id, int count, ScheduledStep& step) {
  Sequence& sequence = sequences_.at(id);
  const int past = sequence.table.num_tokens;
  const AppendCopies copies = append(manager_, sequence.table, count);
  if (copies.block) step.copies.push_back(*copies.block);
  if (copies.window_block) step.window_copies.push_back(*copies.window_block);
  if (copies.state) step.state_copies.push_back(*copies.state);
  const int begin = static_cast<int>(step.tokens.size());
  for (int position = past; position < past + count; ++position) {
    step.tokens.push_back(sequence.tokens[position]);
    step.positions.push_back(position);
    // After an eviction, rows that have been scored are computed once more.
    const int target = position + 1;
    if (sequence.scores() && target >= sequence.scored_begin + static_cast<int>(sequence.log_probs.size()))
      step.scores.push_back({.sequence = id, .row = begin + position - past, .target = sequence.tokens[target]});
  }
  step.sequences.push_back({.begin = begin,
                            .end = begin + count,
                            .past = past,
                            .blocks = sequence.table.blocks,
                            .window_blocks = sequence.table.window_blocks,
                            .state = sequence.table.state});
  sequence.scheduled = true;
  if (sequence.due() > 0) return;
  sequence.prefilling = false;
  if (sequence.sampling) step.samples.push_back({.sequence = id, .row = begin + count - 1});
}

}  // namespace carnot
