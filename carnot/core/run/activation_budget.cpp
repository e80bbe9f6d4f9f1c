#include "carnot/core/run/activation_budget.h"

#include <algorithm>

#include "carnot/core/kernel/statistics/segments.h"
#include "carnot/core/train/model_bundle.h"

namespace carnot {
namespace {

// Of nn/token_statistics, for bfloat16 and for wider types; of bfloat16 logits without a gradient, segments alone are
// kept, of this many rows.
constexpr std::int64_t kBFloat16RowsOfSegments = 4096;
constexpr std::int64_t kBFloat16StripLogits = 1 << 24;
constexpr std::int64_t kStripLogits = 1 << 22;

/// Bytes that a layer keeps for one row: what nn/ saves, operator by operator. `trained`: weights, not adapters.
Count kept_by_layer(const MemorySettings& s, const ModelSizes& n, Count length, bool trained) {
  const Count projected = n.queries + 2 * n.keys;
  const Count narrow = !trained ? s.lora.rank * std::count(n.targeted.begin(), n.targeted.end(), true) : 0;
  // The products' inputs are computed again from these.
  const Count streams = 2 + n.outer_norms, factors = n.norms + (n.whole_norms > 0 ? 2 : 0);
  if (n.own)
    return n.value * (narrow + streams * n.hidden + projected + n.whole_norms + n.queries + 2 * n.inner) +
           n.wide * factors;
  const bool keeps_attention_input =
      trained || n.targets(Projection::Query) || n.targets(Projection::Key) || n.targets(Projection::Value);
  const bool keeps_mlp_input = trained || n.targets(Projection::Gate) || n.targets(Projection::Up);
  const bool keeps_product = trained || n.targets(Projection::Down);
  const Count inputs = (keeps_attention_input ? n.hidden : 0) + (keeps_mlp_input ? n.hidden : 0) +
                       (keeps_product ? n.inner : 0) + narrow;
  // LibTorch's: norms in float32 with their product before the weight, rotated queries, repeated keys and values,
  // the attention's weights, the two halves of the gate.
  const Count norms = (n.norms * n.hidden + n.whole_norms) * (n.wide + (trained ? n.value : 0));
  const Count attention = n.value * (projected + 4 * n.queries + length * s.model.num_heads);
  return n.value * inputs + norms + attention + n.value * 3 * n.inner;
}

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
      projections(layers * (hidden * (queries + 2 * keys) + queries * hidden + 3 * hidden * inner)) {
  const ModelFamily& family = *find_model_family(s.model.family);
  const NormNames& names = norm_names(family.norms);
  norms = names.count();
  outer_norms = NormNames{.after_attention = names.after_attention, .after_mlp = names.after_mlp}.count();
  if (family.query_key_norm == QueryKeyNorm::Whole) whole_norms = queries + keys;
  const std::array<Count, 7> widths{hidden + queries, hidden + keys,  hidden + keys, queries + hidden,
                                    hidden + inner,   hidden + inner, inner + hidden};
  for (std::size_t i = 0; s.lora.rank > 0 && i < widths.size(); ++i) {
    targeted[i] = std::find(s.lora.targets.begin(), s.lora.targets.end(), kProjectionNames[i]) != s.lora.targets.end();
    if (targeted[i]) adapters += layers * s.lora.rank * widths[i];
  }
}

Activations activations(const MemorySettings& s, const ModelSizes& n, Count rows, Count length, bool trained) {
  const Count layer = kept_by_layer(s, n, length, trained);
  // The last layer's output and the final norm's.
  const Count ends = n.value * n.hidden * (n.own || trained ? 2 : 1) + (n.own ? 0 : n.wide * n.hidden);
  // Each operator's gradient takes the place of what it saved, but for the MLP's first and the residual stream's. Of
  // Carnot's, the gated product's gradient and that of its two inputs are added to what was saved of these.
  // A norm behind the MLP has freed its input by then.
  const Count freed = n.outer_norms > 0 ? n.hidden : 0;
  const Count mlp = rows * n.value * (n.own ? 3 * n.inner + n.hidden - freed : n.inner + n.hidden + n.hidden / 2);
  // LibTorch's attention goes sequence by sequence, when what the MLP saved has been freed.
  const Count attention = n.own ? 0 : 4 * length * length * s.model.num_heads * n.value - rows * n.value * 3 * n.inner;
  const Count passing = std::max(mlp, attention);
  if (!s.train.activation_checkpointing) return {rows * (n.layers * layer + ends), passing};
  return {rows * (n.layers * n.hidden * n.value + ends), rows * layer + passing};
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
  const Count widest = std::max(3 * n.inner, 2 * n.queries + 2 * n.keys) + (n.own ? 0 : 2 * n.inner);
  const Count attention = n.own ? 0 : 3 * s.model.num_heads * n.value * length * length;
  return rows * n.value * (3 * n.hidden + widest) + attention;
}

}  // namespace carnot
