// optim/options.h -- the keys of an optimizer, as they appear in the sections train, critic and sft.
#pragma once

#include <string>

#include "carnot/core/base/fields.h"

namespace carnot {

struct OptimizerOptions {
  std::string optimizer = "adamw";  ///< a row of optim/rules.h
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0.95;     ///< Muon's
  double weight_decay = 0.0;  ///< decoupled; matrices only, never norms and biases
  double max_grad_norm = 1.0;
  bool master_weights = true;       ///< float32 weights, in two halves, one of them the bfloat16 weights
  std::string moments = "float32";  ///< float32 (float64 for float64 weights) | bfloat16

  void fields(FieldVisitor& visit);
};

}  // namespace carnot
