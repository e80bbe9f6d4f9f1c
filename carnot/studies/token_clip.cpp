#include "carnot/studies/token_clip.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "carnot/core/loss/clip.h"

namespace carnot {
namespace {

at::Tensor column(std::span<const ClipInput> inputs, double ClipInput::* field) {
  at::Tensor values_T = at::empty({static_cast<std::int64_t>(inputs.size())}, at::kDouble);
  for (std::size_t t = 0; t < inputs.size(); ++t) values_T.mutable_data_ptr<double>()[t] = inputs[t].*field;
  return values_T;
}

}  // namespace

std::vector<TokenClip> token_clips(std::span<const ClipInput> inputs, const ObjectiveOptions& options) {
  const at::Tensor log_ratio_T = column(inputs, &ClipInput::log_ratio);
  const Ratio ratio{.token_log_ratio_T = log_ratio_T,
                    .ratio_T = log_ratio_T.clamp(-kMaxLogRatio, kMaxLogRatio).exp(),
                    .bounded_T = log_ratio_T.abs() > kMaxLogRatio};
  const Surrogate surrogate =
      clipped_surrogate(options, ratio, column(inputs, &ClipInput::advantage), column(inputs, &ClipInput::clip_scale));
  std::vector<TokenClip> clips(inputs.size());
  for (std::size_t t = 0; t < inputs.size(); ++t)
    clips[t] = {.slope = surrogate.slope_T.const_data_ptr<double>()[t],
                .clipped = surrogate.clipped_T.const_data_ptr<bool>()[t],
                .dual_clipped = surrogate.dual_clipped_T.const_data_ptr<bool>()[t]};
  return clips;
}

}  // namespace carnot
