#include "carnot/core/run/activation_budget.h"

#include <algorithm>

#include "carnot/core/kernel/dispatch.h"
#include "carnot/core/kernel/statistics/segments.h"
#include "carnot/core/train/model_bundle.h"

namespace carnot {
namespace {

// Of nn/token_statistics, for bfloat16 and for wider types; of bfloat16 logits without a gradient, segments alone are
// kept, of this many rows.
constexpr std::int64_t kBFloat16RowsOfSegments = 4096;
constexpr std::int64_t kBFloat16StripLogits = 1 << 24;
constexpr std::int64_t kStripLogits = 1 << 22;

constexpr auto kAttentionProjections = static_cast<std::ptrdiff_t>(Projection::Gate);

/// Ranks of the adapters of the projections of attention, of a convolution, of the gated delta rule, and of an MLP,
/// together.
Count attention_ranks(const MemorySettings& s, const ModelSizes& n) {
  return s.lora.rank *
         std::count(n.targeted.begin() + kFirstOfAttention, n.targeted.begin() + kAttentionProjections, true);
}
Count convolution_ranks(const MemorySettings& s, const ModelSizes& n) {
  return Count(s.lora.rank) * (n.targets(Projection::Input) + n.targets(Projection::Output));
}
Count delta_ranks(const MemorySettings& s, const ModelSizes& n) {
  return s.lora.rank *
         (std::count(n.targeted.begin(), n.targeted.begin() + kFirstOfAttention, true) + n.targets(Projection::Output));
}
Count mlp_ranks(const MemorySettings& s, const ModelSizes& n) {
  return s.lora.rank * std::count(n.targeted.begin() + kAttentionProjections, n.targeted.end(), true);
}

/// Bytes that attention and the norms of a layer keep for one row: what nn/ saves, operator by operator. `trained`:
/// weights, not adapters.
Count kept_by_attention(const MemorySettings& s, const ModelSizes& n, Count length, bool trained) {
  const Count projected = n.queries + 2 * n.keys;
  const Count narrow = trained ? Count(0) : attention_ranks(s, n);
  // The products' inputs are computed again from these.
  const Count streams = 2 + n.outer_norms, factors = n.norms + (n.whole_norms > 0 ? 2 : 0);
  if (n.own)
    return n.value * (narrow + streams * n.hidden + projected + n.whole_norms + n.queries + 2 * n.gates) +
           n.wide * factors;
  const bool keeps_input =
      trained || n.targets(Projection::Query) || n.targets(Projection::Key) || n.targets(Projection::Value);
  // LibTorch's: norms in float32 with their product before the weight, rotated queries, repeated keys and values,
  // the attention's weights.
  const Count norms = (n.norms * n.hidden + n.whole_norms) * (n.wide + (trained ? n.value : 0));
  const Count attention = n.value * (projected + 4 * n.queries + 3 * n.gates + length * s.model.num_heads);
  return n.value * (narrow + (keeps_input ? n.hidden : 0)) + norms + attention;
}

/// The same of a short convolution: the input of its product, of which the result is computed again.
Count kept_by_convolution(const MemorySettings& s, const ModelSizes& n, bool trained) {
  const Count narrow = trained ? Count(0) : convolution_ranks(s, n), streams = 2 + n.outer_norms;
  if (n.own) return n.value * (narrow + (streams + 3) * n.hidden) + n.wide * n.norms;
  const Count taps = s.model.convolution_width;
  const Count norms = n.norms * n.hidden * (n.wide + (trained ? n.value : 0));
  const int kept_inputs = (trained || n.targets(Projection::Input)) + (trained || n.targets(Projection::Output));
  // LibTorch's: B, C, x and u, the rows of all taps, their sum.
  return n.value * (narrow + (4 + taps + 1 + kept_inputs) * n.hidden) + norms + taps * 9;
}

/// The same of the gated delta rule: rows before and after the convolution, what the rule returns, and the gated norm's
/// gate and input.
Count kept_by_delta(const MemorySettings& s, const ModelSizes& n, bool trained) {
  const Count narrow = trained ? Count(0) : delta_ranks(s, n), streams = 2 + n.outer_norms;
  const Count rows = 2 * n.delta_width + 4 * n.delta_values + 2 * n.delta_heads;
  const Count taps = Count(s.model.convolution_width) * 8;
  if (n.own) return n.value * (narrow + streams * n.hidden + rows) + n.wide * (n.norms + 1 + n.delta_heads) + taps;
  // LibTorch's: a state of each row and its decay, and the rows of all taps.
  const Count states = 3 * n.delta_values * s.model.delta_key_dim;
  return n.value * (narrow + 3 * streams * n.hidden + rows + s.model.convolution_width * n.delta_width) +
         n.wide * (states + 6 * n.delta_width);
}

/// The part of it that the first layer does not keep if nothing before its output is trained.
Count unneeded_in_first_layer(const MemorySettings& s, const ModelSizes& n, bool trained) {
  const bool frozen = !trained && std::count(n.targeted.begin(), n.targeted.begin() + kFirstOfAttention, true) == 0;
  if (!n.own || !frozen || s.model.layer_kind(0).mixer != Mixer::GatedDelta) return 0;
  return n.value * (2 * n.delta_width + 2 * n.delta_values + 2 * n.delta_heads) + n.wide * (2 + n.delta_heads) +
         Count(s.model.convolution_width) * 8;
}

/// The same of a gated MLP.
Count kept_by_mlp(const MemorySettings& s, const ModelSizes& n, bool trained) {
  const Count narrow = trained ? Count(0) : mlp_ranks(s, n);
  if (n.own) return n.value * (narrow + 2 * n.inner);
  const bool keeps_input = trained || n.targets(Projection::Gate) || n.targets(Projection::Up);
  const bool keeps_product = trained || n.targets(Projection::Down);
  // LibTorch's: the two halves of the gate.
  return n.value * (narrow + (keeps_input ? n.hidden : 0) + (keeps_product ? n.inner : 0) + 3 * n.inner);
}

/// The same of a mixture of experts: the input of the router and of all experts; gate and result of each expert of the
/// row; its weights, its experts' indices and the probabilities of all.
Count kept_by_experts(const MemorySettings& s, const ModelSizes& n, bool trained) {
  const Count narrow = trained ? Count(0) : mlp_ranks(s, n);
  const Count routing = n.top_k * (n.wide + 8);
  const Count probabilities = (n.experts + kernel::kTile - 1) / kernel::kTile * kernel::kTile;
  if (n.own)
    return n.value * (n.hidden + n.top_k * (narrow + n.hidden + 2 * n.expert_inner)) + routing + n.wide * probabilities;
  // LibTorch's: inputs row by row, results in their order and widened, the halves of the gate.
  return n.value * n.top_k * (narrow + 2 * n.hidden + 4 * n.expert_inner) + routing +
         n.wide * (n.hidden + n.top_k * n.hidden + 3 * probabilities);
}

/// What comes and goes when the gradient of a layer's MLP is computed. Each operator's gradient takes the place of what
/// it saved, but for the MLP's first and the residual stream's. Of Carnot's, the gated product's gradient and that of
/// its two inputs are added to what was saved of these. A norm behind the MLP has freed its input by then.
Count passing_in_mlp(const ModelSizes& n) {
  if (!n.own) return n.value * (n.inner + n.hidden + n.hidden / 2);
  return n.value * (3 * n.inner + n.hidden - (n.outer_norms > 0 ? n.hidden : 0));
}

/// The gradients of all experts' results exist together.
Count passing_in_experts(const ModelSizes& n) { return n.value * (n.top_k * n.hidden + n.hidden); }

Count strip_rows(const MemorySettings& s, const ModelSizes& n) {
  const std::int64_t logits = n.value < n.wide ? kBFloat16StripLogits : kStripLogits;
  return std::clamp<Count>(logits / std::max(1, s.model.vocab_size), 16, 256);
}

}  // namespace

Count value_bytes(const std::string& dtype) { return dtype == "float64" ? 8 : dtype == "bfloat16" ? 2 : 4; }

ModelSizes::ModelSizes(const MemorySettings& s)
    : value(value_bytes(s.run.dtype)),
      wide(std::max<Count>(4, value)),
      own(s.run.device == "cpu"),
      hidden(s.model.hidden_size),
      inner(s.model.intermediate_size),
      queries(Count(s.model.num_heads) * s.model.head_dim),
      keys(Count(s.model.num_kv_heads) * s.model.head_dim),
      layers(s.model.num_layers),
      head(Count(s.model.vocab_size) * hidden),
      parameters(s.model.num_parameters()),
      convolutions(s.model.num_layers_with(Mixer::ShortConvolution)),
      deltas(s.model.num_layers_with(Mixer::GatedDelta)),
      delta_width(s.model.delta_width()),
      delta_values(s.model.delta_values()),
      delta_heads(s.model.delta_value_heads),
      gates(s.model.query_width() - std::int64_t{s.model.num_heads} * s.model.head_dim),
      expert_layers(s.model.num_expert_layers()),
      experts(s.model.num_experts),
      top_k(s.model.experts_per_token),
      expert_inner(s.model.expert_width()),
      projections(
          attention_layers() * (hidden * (queries + gates + 2 * keys) + queries * hidden) +
          convolutions * 4 * hidden * hidden + deltas * hidden * (delta_width + 2 * delta_values + 2 * delta_heads) +
          dense_layers() * 3 * hidden * inner + expert_layers * experts * (3 * hidden * expert_inner + hidden)) {
  const ModelFamily& family = *find_model_family(s.model.family);
  const NormNames& names = norm_names(family.norms);
  norms = names.count();
  outer_norms = NormNames{.after_attention = names.after_attention, .after_mlp = names.after_mlp}.count();
  if (family.query_key_norm == QueryKeyNorm::Whole) whole_norms = queries + keys;
  const Count mlp = dense_layers() * (hidden + inner) + expert_layers * experts * (hidden + expert_inner);
  const std::array<Count, kProjectionNames.size()> widths{
      convolutions * 4 * hidden + deltas * (hidden + delta_width),
      deltas * (hidden + delta_values),
      deltas * (hidden + delta_heads),
      deltas * (hidden + delta_heads),
      attention_layers() * (hidden + queries + gates),
      attention_layers() * (hidden + keys),
      attention_layers() * (hidden + keys),
      attention_layers() * (queries + hidden) + convolutions * 2 * hidden + deltas * (delta_values + hidden),
      mlp,
      mlp,
      mlp};
  for (std::size_t i = 0; s.lora.rank > 0 && i < widths.size(); ++i) {
    targeted[i] = std::find(s.lora.targets.begin(), s.lora.targets.end(), kProjectionNames[i]) != s.lora.targets.end();
    if (targeted[i]) adapters += s.lora.rank * widths[i];
  }
}

Activations activations(const MemorySettings& s, const ModelSizes& n, Count rows, Count length, bool trained) {
  const Count attention = kept_by_attention(s, n, length, trained);
  const Count convolution = n.convolutions > 0 ? kept_by_convolution(s, n, trained) : Count(0);
  const Count delta = n.deltas > 0 ? kept_by_delta(s, n, trained) : Count(0);
  // By kind of MLP; only of those that there are.
  const Activations dense = n.dense_layers() > 0 ? Activations{kept_by_mlp(s, n, trained), passing_in_mlp(n)}
                                                 : Activations(),
                    mixed = n.expert_layers > 0 ? Activations{kept_by_experts(s, n, trained), passing_in_experts(n)}
                                                : Activations();
  // The last layer's output and the final norm's.
  const Count ends = n.value * n.hidden * (n.own || trained ? 2 : 1) + (n.own ? 0 : n.wide * n.hidden);
  // LibTorch's attention goes sequence by sequence, when what the MLP saved has been freed.
  const Count in_attention =
      n.own ? 0 : 4 * length * length * s.model.num_heads * n.value - rows * n.value * 3 * n.widest_inner();
  const Count passing = std::max(rows * std::max(dense.passing, mixed.passing), in_attention);
  if (!s.train.activation_checkpointing)
    return {rows * (n.attention_layers() * attention + n.convolutions * convolution + n.deltas * delta +
                    n.dense_layers() * dense.kept + n.expert_layers * mixed.kept + ends -
                    unneeded_in_first_layer(s, n, trained)),
            passing};
  const auto again = [&](const Activations& mlp) {
    return rows * (std::max({attention, convolution, delta}) + mlp.kept) + std::max(rows * mlp.passing, in_attention);
  };
  return {rows * (n.layers * n.hidden * n.value + ends), std::max(again(dense), again(mixed))};
}

Count statistics_bytes(const MemorySettings& s, const ModelSizes& n, bool with_gradient) {
  const Count strip = strip_rows(s, n) * s.model.vocab_size * n.wide;
  if (!n.own) return 5 * strip;
  if (n.value < n.wide && !with_gradient)
    return kBFloat16RowsOfSegments * Count(kernel::segments_of(s.model.vocab_size)) *
           static_cast<std::int64_t>(sizeof(kernel::SegmentStatistics<float>));
  return with_gradient && n.value == n.wide ? strip + n.head * n.value : strip;
}

Count pass_bytes(const MemorySettings& s, const ModelSizes& n, Count rows, Count length) {
  const Count inner = n.dense_layers() > 0 ? n.inner : Count(0);
  // Of experts: inputs and results of all, and one expert's gate, or results once more.
  const Count mixed = n.expert_layers > 0
                          ? n.hidden + 2 * n.top_k * n.hidden + std::max(3 * n.expert_inner, n.top_k * n.hidden)
                          : Count(0);
  // Of the gated delta rule: rows before the convolution and after it, with their gate.
  const Count delta = 2 * n.delta_width + 2 * n.delta_values;
  const Count widest =
      std::max({3 * inner, mixed, 2 * n.queries + 2 * n.keys + 2 * n.gates, n.deltas > 0 ? delta : Count(0)}) +
      (n.own ? 0 : 2 * n.widest_inner());
  const Count attention = n.own ? 0 : 3 * s.model.num_heads * n.value * length * length;
  return rows * n.value * (3 * n.hidden + widest) + attention;
}

}  // namespace carnot
