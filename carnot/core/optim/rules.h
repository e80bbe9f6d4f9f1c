// optim/rules.h -- the optimizers that recipes can name (train.optimizer), one row each.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "carnot/core/optim/options.h"
#include "carnot/core/optim/update_rule.h"

namespace carnot {

struct OptimizerRow {
  std::string_view name, summary;
  std::unique_ptr<UpdateRule> (*make)(const OptimizerOptions&);
};

std::span<const OptimizerRow> optimizer_rows();

/// REQUIRES: options.optimizer is the name of a row, as the key's check ensures.
std::unique_ptr<UpdateRule> make_update_rule(const OptimizerOptions& options);

}  // namespace carnot
