#include "carnot/core/branch/tree_expand.h"

#include <algorithm>
#include <numeric>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

class TreeExpand final : public BranchPolicy {
 public:
  explicit TreeExpand(const TreeExpandOptions& options) : options_(options) {}

  std::string name() const override { return "tree_expand"; }
  int initial(int budget) const override { return std::min(options_.trees, budget); }
  bool branch_here(const BranchContext&) const override { return false; }

  std::optional<TreeExpansion> expansion(int budget) const override {
    const int trees = initial(budget);
    TreeExpansion plan{.nodes = options_.nodes, .rounds = options_.rounds};
    for (int t = 0; t < trees; ++t) plan.leaves.push_back(budget / trees + (t < budget % trees ? 1 : 0));
    const int most = plan.leaves.empty() ? 1 : plan.leaves.front();
    plan.rounds = std::max(plan.rounds, (most - 2 + plan.nodes) / plan.nodes);
    return plan;
  }

 private:
  TreeExpandOptions options_;
};

}  // namespace

void TreeExpandOptions::fields(FieldVisitor& visit) {
  visit.field("trees", trees, "trees per task", at_least(1));
  visit.field("nodes", nodes, "starting points drawn per tree and round", at_least(1));
  visit.field("rounds", rounds, "rounds of expansion, at least", at_least(1));
}

std::unique_ptr<BranchPolicy> tree_expand(const TreeExpandOptions& options) {
  return std::make_unique<TreeExpand>(options);
}

std::vector<int> pick_leaves(int leaves, int keep, RandomStream& random) {
  CARNOT_CHECK_LE(keep, leaves);
  std::vector<int> all(leaves);
  std::iota(all.begin(), all.end(), 0);
  random.shuffle(all);
  all.resize(keep);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace carnot
