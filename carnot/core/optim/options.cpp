#include "carnot/core/optim/options.h"

#include "carnot/core/optim/rules.h"

namespace carnot {

void OptimizerOptions::fields(FieldVisitor& visit) {
  std::vector<std::string> names;
  std::string summaries;
  for (const OptimizerRow& row : optimizer_rows()) {
    names.emplace_back(row.name);
    summaries += (summaries.empty() ? "" : "; ") + std::string(row.name) + ": " + std::string(row.summary);
  }
  visit.field("optimizer", optimizer, summaries, one_of(names));
  visit.field("beta1", beta1, "decay of the mean of gradients", Limits{.low = 0, .high = 1, .open_high = true});
  visit.field("beta2", beta2, "decay of the mean of squared gradients", Limits{.low = 0, .high = 1, .open_high = true});
  visit.field("epsilon", epsilon, "added to the root of the mean square", above(0));
  visit.field("momentum", momentum, "muon: decay of its mean of gradients",
              Limits{.low = 0, .high = 1, .open_high = true});
  visit.field("weight_decay", weight_decay, "decoupled decay of matrices, per unit of learning rate", at_least(0));
  visit.field("max_grad_norm", max_grad_norm, "gradients are scaled down to this global norm", above(0));
  visit.field("master_weights", master_weights,
              "keep float32 weights beside bfloat16 ones; off: updates are rounded stochastically");
  visit.field("moments", moments, "what the moments are kept in", one_of({"float32", "bfloat16"}));
}

}  // namespace carnot
