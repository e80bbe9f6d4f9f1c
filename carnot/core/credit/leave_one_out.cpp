#include "carnot/core/credit/leave_one_out.h"

namespace carnot {
namespace {

Standard against_the_others(std::span<const double> rewards, Singleton singleton) {
  Standard standard = standard_of(rewards, {.divide_by_std = false, .singleton = singleton});
  const double n = static_cast<double>(rewards.size());
  if (rewards.size() > 1) standard.divisor = (n - 1) / n;
  return standard;
}

}  // namespace

void LeaveOneOutOptions::fields(FieldVisitor& visit) {
  singleton_field(visit, singleton);
  statistics_field(visit, statistics);
}

CreditRule leave_one_out(const LeaveOneOutOptions& options) {
  return against_group("leave_one_out", options.statistics, [singleton = options.singleton](auto rewards) {
    return against_the_others(rewards, singleton);
  });
}

}  // namespace carnot
