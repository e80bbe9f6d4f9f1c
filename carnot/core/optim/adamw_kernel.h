// optim/adamw_kernel.h -- AdamW's inner loop over plain arrays. No LibTorch: its source is compiled for speed by
// itself.
#pragma once

#include <cstdint>

namespace carnot {

/// The numbers of one update; the same for every element of a tensor.
struct AdamWUpdate {
  double gradient_scale = 1;  ///< of the clipping
  double beta1 = 0, beta2 = 0, epsilon = 0;
  double keep = 1;          ///< 1 - learning rate x decay
  double step_size = 0;     ///< learning rate / (1 - beta1^t)
  double inverse_root = 1;  ///< 1 / sqrt(1 - beta2^t)
};

/// One pass over memory: moments, decay and step. Element by element, so that any split gives the same bits.
void adamw_kernel(const AdamWUpdate& update, std::int64_t elements, const float* gradient, float* weight, float* first,
                  float* second);
void adamw_kernel(const AdamWUpdate& update, std::int64_t elements, const double* gradient, double* weight,
                  double* first, double* second);

}  // namespace carnot
