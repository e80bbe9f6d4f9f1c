// credit/tree_relative.h -- Tree-GRPO: compares a leaf with its group and with its own tree (arXiv:2509.21240).
#pragma once

#include "carnot/core/credit/normalise.h"
#include "carnot/core/credit/rule.h"

namespace carnot {

enum class TreeEstimator {
  GroupAndTree,  ///< z in the group + z in the tree (the paper)
  Tree,          ///< z in the tree only
  Nested,        ///< z in the tree of the z in the group
  /// Dense rewards of the response's tokens, including observations but not prompts: z in the group + z in the tree.
  PerToken,
};

struct TreeRelativeOptions {
  TreeEstimator estimator = TreeEstimator::GroupAndTree;
  Normalisation normalisation{};

  void fields(FieldVisitor& visit);
  UnreadKeys unread_keys() const { return normalisation.unread_keys(); }
};

/// A base rule. A tree with one leaf, or a group of one, follows Normalisation::singleton; Nested then uses the z of
/// the group.
CreditRule tree_relative(const TreeRelativeOptions& options = {});

/// ARPO's hard attribution (arXiv:2507.19849), a modulator: on a turn that several included leaves of a tree share,
/// each one's advantage becomes the mean of all of them, token by token. No effect on chains.
CreditRule shared_prefix();

}  // namespace carnot
