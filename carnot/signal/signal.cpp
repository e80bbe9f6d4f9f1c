#include "carnot/signal/signal.h"

namespace carnot {

void InfoGainOptions::fields(FieldVisitor& visit) {
  enum_field(visit, "measure", measure, {"probability", "log_probability"}, "what of the answer is compared");
  visit.field("query_baseline", query_baseline, "measure the first turn's gain over the prompt alone");
}

}  // namespace carnot
