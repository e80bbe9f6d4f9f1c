// branch/tree_expand.h -- Tree-GRPO: grows trees from randomly chosen nodes (arXiv:2509.21240).
#pragma once

#include "carnot/core/base/fields.h"
#include "carnot/core/base/random.h"
#include "carnot/core/branch/branch.h"

namespace carnot {

struct TreeExpandOptions {
  int trees = 2;
  int nodes = 2;   ///< starting points per tree and round
  int rounds = 1;  ///< at least; more if the budget needs more leaves than 1 + nodes * rounds

  void fields(FieldVisitor& visit);
};

/// initial(budget) trees; expansion(budget) divides the budget's leaves over them as evenly as possible.
std::unique_ptr<BranchPolicy> tree_expand(const TreeExpandOptions& options = {});

/// `keep` of `leaves` leaves, uniformly without replacement, in ascending order. REQUIRES: 0 <= keep <= leaves.
std::vector<int> pick_leaves(int leaves, int keep, RandomStream& random);

}  // namespace carnot
