// optim/adamw.h -- AdamW (Loshchilov and Hutter 2019) with fp32 master weights, and clipping by the global norm.
//
// What is kept in bfloat16 between updates is computed in float32 and rounded up or down stochastically
// (optim/stochastic_rounding.h); to the nearest, a step below half of the last bit would be lost every time.
// Sums run in a fixed order: the same gradients give the same bits on any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/optim/adamw_kernel.h"
#include "carnot/optim/optimizer.h"

namespace carnot {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  ///< decoupled; matrices only, never norms and biases
  double max_grad_norm = 1.0;
  bool master_weights = true;       ///< a float32 copy of bfloat16 weights
  std::string moments = "float32";  ///< float32 (float64 for float64 weights) | bfloat16

  void fields(FieldVisitor& visit);
};

class AdamW : public Optimizer {
 public:
  /// The tensors are updated in place.
  AdamW(Parameters parameters, const AdamWOptions& options);

  StepReport step(double learning_rate) override;

  /// Moments, and master weights where there are any.
  Parameters state() const override;
  Status load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped) override;

  std::int64_t num_updates() const override { return num_updates_; }
  std::int64_t num_skipped() const override { return num_skipped_; }

 private:
  struct Slot {
    std::string name;
    at::Tensor parameter, master, first, second;  ///< without a copy, `master` is the parameter's own memory
    bool decays = false;
  };
  void update(Slot& slot, const AdamWUpdate& update, const at::Tensor& gradient);

  std::vector<Slot> slots_;
  AdamWOptions options_;
  std::int64_t num_updates_ = 0;
  std::int64_t num_skipped_ = 0;
};

}  // namespace carnot
