#include "carnot/core/credit/group_relative.h"

namespace carnot {

void GroupRelativeOptions::fields(FieldVisitor& visit) {
  normalisation.fields(visit);
  statistics_field(visit, statistics);
}

CreditRule group_relative(const GroupRelativeOptions& options) {
  return against_group("group_relative", options.statistics, [normalisation = options.normalisation](auto rewards) {
    return standard_of(rewards, normalisation);
  });
}

}  // namespace carnot
