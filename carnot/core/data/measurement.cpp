#include "carnot/core/data/measurement.h"

namespace carnot {

std::optional<Measurement> measurement_of(Column column) {
  switch (column) {
    case Column::LogProbOld:
    case Column::EntropyOld: return Measurement::OldPolicy;
    case Column::LogProbReference:
    case Column::EnergyReference:
    case Column::EntropyReference: return Measurement::Reference;
    case Column::Value: return Measurement::Values;
    case Column::AdvantageOracle: return Measurement::Oracle;
    case Column::LogProbRollout:
    case Column::EntropyRollout:
    case Column::LogProbCurrent:
    case Column::Reward: break;
  }
  return std::nullopt;
}

void InfoGainOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "measure", measure, {"probability", "log_probability"}, "what of the answer is compared");
  visit.field("query_baseline", query_baseline, "measure the first turn's gain over the prompt alone");
}

}  // namespace carnot
