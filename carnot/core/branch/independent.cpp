#include "carnot/core/branch/independent.h"

namespace carnot {
namespace {

class Independent final : public BranchPolicy {
 public:
  std::string name() const override { return "independent"; }
  int initial(int budget) const override { return budget; }
  bool branch_here(const BranchContext&) const override { return false; }
  bool ever_branches() const override { return false; }
};

}  // namespace

std::unique_ptr<BranchPolicy> independent() { return std::make_unique<Independent>(); }

}  // namespace carnot
