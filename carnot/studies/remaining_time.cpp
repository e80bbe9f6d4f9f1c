#include "carnot/studies/remaining_time.h"

namespace carnot {

std::optional<double> RemainingTime::estimate(std::int64_t starts, std::int64_t runs) const {
  if (runs_.count == 0) return std::nullopt;
  const double start = starts_.count > 0 ? starts_.mean() : runs_.mean();
  return static_cast<double>(starts) * start + static_cast<double>(runs) * runs_.mean();
}

}  // namespace carnot
