// commands/explain.h -- `carnot credit --explain`: what one optimizer step would do to each token of the rows.
#pragma once

#include "carnot/core/cli/credit.h"

namespace carnot {

CreditExplainer credit_explainer();

}  // namespace carnot
