// cli/recompute_credit.h -- `carnot credit FILE --method M`: a method's credit for rollouts that exist already.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "carnot/base/result.h"

namespace carnot {

struct CreditRequest {
  std::filesystem::path file{};
  std::string method{};
  /// `key=value`: a recipe's `method.` and `objective.` keys. `method.` may be left out, and so may the method's name
  /// in front of its options.
  std::vector<std::string> overrides{};
  std::filesystem::path output{};  ///< empty: standard output
};

/// The rows of the file, in its order, with `advantage`, `weight`, `clip_scale` and `value_target` as the method
/// decides, and `dropped` where its filter does; other fields stay. Every field that the method needs and a row lacks
/// is named with the first such line.
Result<std::string> recompute_credit(const CreditRequest& request);

}  // namespace carnot
