#include "carnot/core/nn/lora_options.h"

#include <set>

namespace carnot {

void LoraOptions::fields(FieldVisitor& visit) {
  visit.field("rank", rank,
              "of the adapters that are trained in place of the weights; 0: none, all weights are trained",
              at_least(0));
  visit.field("alpha", alpha, "adapters are scaled by alpha / rank", above(0));
  visit.field("targets", targets, "projections that get an adapter",
              one_of({kProjectionNames.begin(), kProjectionNames.end()}));
}

bool LoraOptions::operator==(const LoraOptions& other) const {
  return rank == other.rank && alpha == other.alpha &&
         std::set(targets.begin(), targets.end()) == std::set(other.targets.begin(), other.targets.end());
}

}  // namespace carnot
