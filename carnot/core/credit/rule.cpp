#include "carnot/core/credit/rule.h"

namespace carnot {

CreditTable run_credit(std::span<const CreditRule> chain, std::span<const Trajectory> trajectories) {
  CreditTable table = fresh_credit(trajectories);
  for (const CreditRule& rule : chain) rule.apply(trajectories, table);
  return table;
}

}  // namespace carnot
