// cli/credit.h -- what `carnot credit --explain` adds to the command; given from above, where tensors are.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "carnot/core/recompute/recompute_credit.h"

namespace carnot {

struct ExplainedRows {
  std::vector<TokenLists> lists{};      ///< to add to the rows, by trajectory
  std::vector<std::string> excluded{};  ///< terms of the loss that the gradient leaves out, with the reason
};

struct CreditExplainer {
  FurtherNeeds needs{};
  std::function<Result<ExplainedRows>(const CreditedRows& rows)> explain{};
};

}  // namespace carnot
