#include "carnot/core/nn/rotary.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>
#include <numbers>

namespace carnot {
namespace {

/// Llama 3.1: wavelengths up to high_freq's share of the original length are unchanged, those beyond low_freq's are
/// stretched by the factor, and those in between are interpolated.
at::Tensor llama3_frequencies(const RotaryScaling& scaling, const at::Tensor& frequency) {
  const double length = scaling.original_max_positions;
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  const at::Tensor wavelength = 2 * std::numbers::pi / frequency;
  const at::Tensor stretched = frequency / scaling.factor;
  const at::Tensor share = (length / wavelength - low) / (high - low);
  const at::Tensor mixed = (1 - share) * frequency / scaling.factor + share * frequency;
  const at::Tensor slow = wavelength > length / low, fast = wavelength < length / high;
  return at::where(slow, stretched, at::where(fast, frequency, mixed));
}

/// The dimension whose angle makes this many rotations over the original length.
double yarn_dimension(const RotarySettings& settings, double rotations) {
  return settings.dim * std::log(settings.scaling.original_max_positions / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(settings.theta));
}

at::Tensor yarn_frequencies(const RotarySettings& settings, const at::Tensor& power) {
  const RotaryScaling& scaling = settings.scaling;
  double low = yarn_dimension(settings, scaling.beta_fast), high = yarn_dimension(settings, scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, settings.dim - 1.0);
  if (low == high) high += 0.001;
  const at::Tensor ramp = at::clamp((at::arange(power.size(0), power.options()) - low) / (high - low), 0, 1);
  const at::Tensor kept = 1 - ramp;
  return 1 / (scaling.factor * power) * (1 - kept) + 1 / power * kept;
}

at::Tensor frequencies(const RotarySettings& settings, const at::TensorOptions& options) {
  const at::Tensor power = at::pow(settings.theta, at::arange(0, settings.dim, 2, options) / settings.dim);
  const RotaryScaling& scaling = settings.scaling;
  if (scaling.kind == "linear") return 1 / power / scaling.factor;
  if (scaling.kind == "llama3") return llama3_frequencies(scaling, 1 / power);
  if (scaling.kind == "yarn") return yarn_frequencies(settings, power);
  if (scaling.kind == "longrope") return 1 / (at::tensor(scaling.short_factors, options) * power);
  return 1 / power;
}

at::Tensor query_scale(const RotaryScaling& scaling, std::int64_t count) {
  if (scaling.query_growth == 0) return {};
  const at::Tensor lengths = at::floor(at::arange(count, at::kDouble) / scaling.original_max_positions);
  return 1 + scaling.query_growth * at::log(1 + lengths);
}

}  // namespace

RotaryTable rotary_table(const RotarySettings& settings, std::int64_t count, const at::TensorOptions& options) {
  // Frequencies and angles are rounded to float32, as in transformers; a float64 model keeps all digits. The table of a
  // bfloat16 model is float32.
  const auto precision = options.dtype() == at::kDouble ? at::kDouble : at::kFloat;
  const at::TensorOptions on_cpu = at::TensorOptions().dtype(precision);
  const at::Tensor angles = at::outer(at::arange(count, on_cpu), frequencies(settings, on_cpu));
  const double scale = settings.scaling.attention_factor;
  const at::TensorOptions kept = options.dtype(precision);
  const at::Tensor queries = query_scale(settings.scaling, count);
  return {.cosine = (at::cos(angles) * scale).to(kept).contiguous(),
          .sine = (at::sin(angles) * scale).to(kept).contiguous(),
          .query_scale = queries.defined() ? queries.to(kept) : queries};
}

}  // namespace carnot
