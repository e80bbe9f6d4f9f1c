#include "carnot/core/engine/sequence.h"

#include <algorithm>

#include "carnot/core/base/check.h"

namespace carnot {

SequenceId SequenceSet::add(Sequence sequence) {
  SequenceId id = static_cast<SequenceId>(slots_.size());
  if (unused_.empty()) {
    slots_.emplace_back();
  } else {
    id = unused_.back();
    unused_.pop_back();
  }
  sequence.live = true;
  sequence.prefilling = sequence.due() > 0;
  slots_[id] = std::move(sequence);
  order_.push_back(id);
  return id;
}

void SequenceSet::remove(SequenceId id) {
  Sequence& sequence = at(id);
  sequence.live = sequence.sampling = sequence.prefilling = false;
  order_.erase(std::find(order_.begin(), order_.end(), id));
  unused_.push_back(id);
}

Sequence& SequenceSet::at(SequenceId id) {
  CARNOT_CHECK_LT(static_cast<std::size_t>(id), slots_.size());
  Sequence& found = slots_[id];
  CARNOT_CHECK(found.live, "sequence " + std::to_string(id) + " was released");
  return found;
}

const Sequence& SequenceSet::at(SequenceId id) const { return const_cast<SequenceSet*>(this)->at(id); }

}  // namespace carnot
