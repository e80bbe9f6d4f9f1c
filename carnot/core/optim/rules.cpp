#include "carnot/core/optim/rules.h"

#include <algorithm>
#include <array>

#include "carnot/core/base/check.h"
#include "carnot/core/optim/adamw.h"
#include "carnot/core/optim/muon.h"

namespace carnot {
namespace {

constexpr std::array kRows{
    OptimizerRow{"adamw", "Loshchilov and Hutter 2019", make_adamw},
    OptimizerRow{"muon", "matrices of the layers by orthogonalised momentum, all else by AdamW", make_muon},
};

}  // namespace

std::span<const OptimizerRow> optimizer_rows() { return kRows; }

std::unique_ptr<UpdateRule> make_update_rule(const OptimizerOptions& options) {
  const auto row = std::ranges::find(kRows, options.optimizer, &OptimizerRow::name);
  CARNOT_CHECK(row != kRows.end(), options.optimizer);
  return row->make(options);
}

}  // namespace carnot
