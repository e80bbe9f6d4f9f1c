// optim/adamw.h -- AdamW (Loshchilov and Hutter 2019) with fp32 master weights, and clipping by the global norm.
//
// What is kept in bfloat16 between updates is computed in float32 and rounded up or down by chance
// (optim/stochastic_rounding.h); to the nearest, a step below half of the last bit would be lost every time.
// Sums run in a fixed order: the same gradients give the same bits on any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "carnot/base/fields.h"
#include "carnot/base/result.h"
#include "carnot/optim/adamw_kernel.h"

namespace carnot {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  ///< decoupled; matrices only, never norms and biases
  double max_grad_norm = 1.0;
  bool master_weights = true;       ///< a float32 copy of bfloat16 weights
  std::string moments = "float32";  ///< float32 (float64 beside float64 weights) | bfloat16

  void fields(FieldVisitor& visit);
};

struct StepReport {
  double grad_norm = 0;  ///< before clipping; not finite where the step was skipped
  bool skipped = false;  ///< non-finite gradients: nothing changed
};

class AdamW {
 public:
  using Parameters = std::vector<std::pair<std::string, at::Tensor>>;

  /// The tensors are updated in place; their gradients are read and cleared by step().
  AdamW(Parameters parameters, const AdamWOptions& options);

  /// One update with the accumulated gradients; a parameter without a gradient counts as zero gradient.
  StepReport step(double learning_rate);

  /// Moments, and master weights where there are such, for checkpoints.
  Parameters state() const;
  std::int64_t num_updates() const { return num_updates_; }
  std::int64_t num_skipped() const { return num_skipped_; }

  /// Takes back what state() gave. Missing or misshapen tensors are named.
  Status load_state(const Parameters& tensors, std::int64_t num_updates, std::int64_t num_skipped);

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

/// Learning rate by step: linear warm-up, then constant, linear or cosine decay to `final_share` of the peak.
struct ScheduleOptions {
  double learning_rate = 1e-6;
  std::int64_t warmup_steps = 0;
  std::string decay = "constant";  ///< constant | linear | cosine
  double decay_start = 0;          ///< share of the steps after which the decay begins
  double final_share = 0;          ///< of the peak, at the last step

  void fields(FieldVisitor& visit);
};

/// Rate of step `step` (0-based) of `steps`.
double learning_rate_at(const ScheduleOptions& schedule, std::int64_t step, std::int64_t steps);

}  // namespace carnot
