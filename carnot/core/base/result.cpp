#include "carnot/core/base/result.h"

namespace carnot {

Error join_errors(const std::vector<std::string>& problems) {
  CARNOT_CHECK(!problems.empty(), "an error without a problem");
  std::string all = problems.front();
  for (std::size_t i = 1; i < problems.size(); ++i) all += "\n" + problems[i];
  return {all};
}

}  // namespace carnot
