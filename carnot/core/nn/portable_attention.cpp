#include "carnot/core/nn/portable_attention.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "carnot/core/base/check.h"
#include "carnot/core/nn/elementwise.h"
#include "carnot/core/nn/kv_cache.h"

namespace carnot {
namespace {

// Shapes: T rows, N heads, K key-value heads, D head dimension, S sequences, L longest context.

at::Tensor rotated(const at::Tensor& x_TND, const LayerPlan& layer, const RotaryTable& rotary,
                   const at::Tensor& positions) {
  if (layer.unrotated == x_TND.size(-1)) return x_TND;
  const auto angles = [&](const at::Tensor& table) {
    return table.index_select(0, positions).to(x_TND.scalar_type()).unsqueeze(1);
  };
  const at::Tensor cosine = angles(rotary.cosine), sine = angles(rotary.sine);
  const std::int64_t half = (x_TND.size(-1) - layer.unrotated) / 2;
  const auto parts = x_TND.split_with_sizes({half, half, layer.unrotated}, -1);
  return at::cat({parts[0] * cosine - parts[1] * sine, parts[1] * cosine + parts[0] * sine, parts[2]}, -1);
}

at::Tensor scaled_query(const at::Tensor& query_TND, const RotaryTable& rotary, const at::Tensor& positions) {
  if (!rotary.query_scale.defined()) return query_TND;
  return query_TND * rotary.query_scale.index_select(0, positions).to(query_TND.scalar_type()).view({-1, 1, 1});
}

struct Heads {
  at::Tensor query_TND, key_TKD, value_TKD;
};

Heads heads_of(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv,
               const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions) {
  const auto parts = qkv.view({qkv.size(0), config.num_heads + 2 * config.num_kv_heads, config.head_dim})
                         .split_with_sizes({config.num_heads, config.num_kv_heads, config.num_kv_heads}, 1);
  at::Tensor query = parts[0], key = parts[1];
  if (weights.query_norm.defined()) {
    const RmsNormOptions options{.epsilon = config.rms_norm_epsilon, .offset = weights.norm_offset};
    query = rms_norm(query, weights.query_norm, options, KernelChoice::Portable);
    key = rms_norm(key, weights.key_norm, options, KernelChoice::Portable);
  }
  return {scaled_query(rotated(query, layer, rotary, positions), rotary, positions),
          rotated(key, layer, rotary, positions), parts[2]};
}

/// query [N, rows, D] after `past` keys; key and value [K, past + rows, D]. Returns [rows, N D].
at::Tensor attend(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& query, const at::Tensor& key,
                  const at::Tensor& value, std::int64_t past) {
  const std::int64_t rows = query.size(1), keys = key.size(1);
  const std::int64_t repeat = config.num_heads / config.num_kv_heads;
  at::Tensor visible = at::ones({rows, keys}, query.options().dtype(at::kBool)).tril(past);
  if (layer.window > 0) visible = visible.triu(past + 1 - layer.window);
  const at::Tensor scores = at::matmul(query, key.repeat_interleave(repeat, 0).transpose(1, 2)) * layer.attention_scale;
  const at::Tensor weights = scores.masked_fill(visible.logical_not(), -INFINITY).softmax(-1);
  return at::matmul(weights, value.repeat_interleave(repeat, 0)).transpose(0, 1).reshape({rows, -1});
}

/// The rows of a sequence's positions, shared ones first.
std::vector<std::int64_t> rows_by_position(const PackedAttention& plan, int sequence) {
  const auto begin_of = [&](int s) { return plan.offsets[static_cast<std::size_t>(s)]; };
  int position = plan.past_of(sequence) + begin_of(sequence + 1) - begin_of(sequence);
  std::vector<std::int64_t> rows(static_cast<std::size_t>(position));
  for (; position > 0; sequence = plan.parent(sequence))
    for (; position > plan.past_of(sequence); --position)
      rows[static_cast<std::size_t>(position - 1)] = begin_of(sequence) + position - 1 - plan.past_of(sequence);
  return rows;
}

at::Tensor packed(const ModelConfig& config, const LayerPlan& layer, const Heads& heads, const PackedAttention& plan) {
  std::vector<at::Tensor> parts;
  for (int s = 0; s < plan.num_sequences(); ++s) {
    const auto i = static_cast<std::size_t>(s);
    const std::int64_t begin = plan.offsets[i], rows = plan.offsets[i + 1] - plan.offsets[i];
    const at::Tensor query = heads.query_TND.narrow(0, begin, rows).transpose(0, 1);
    const auto visible = [&](const at::Tensor& x) {
      if (plan.past_of(s) == 0) return x.narrow(0, begin, rows).transpose(0, 1);
      return x.index_select(0, at::tensor(rows_by_position(plan, s), at::kLong).to(x.device())).transpose(0, 1);
    };
    parts.push_back(attend(config, layer, query, visible(heads.key_TKD), visible(heads.value_TKD), plan.past_of(s)));
  }
  return at::cat(parts, 0);
}

void write_cache(const LayerPlan& layer, const Heads& heads, const PagedAttention& plan) {
  std::vector<std::int64_t> block, slot;
  for (const PagedRows& rows : plan.sequences) {
    const std::span<const int> blocks = rows.blocks_of(layer.window > 0);
    for (int p = rows.past; p < rows.past + rows.end - rows.begin; ++p) {
      block.push_back(blocks[p / kBlockTokens]);
      slot.push_back(p % kBlockTokens);
    }
  }
  const auto device = heads.key_TKD.device();
  const at::Tensor block_T = at::tensor(block, at::kLong).to(device), slot_T = at::tensor(slot, at::kLong).to(device);
  // keys [blocks, K, D, slot]: viewed as [blocks, slot, K, D], both take one row per token.
  plan.cache->keys(layer.index).permute({0, 3, 1, 2}).index_put_({block_T, slot_T}, heads.key_TKD);
  plan.cache->values(layer.index).permute({0, 2, 1, 3}).index_put_({block_T, slot_T}, heads.value_TKD);
}

/// Those of a sequence's first `keys` positions. Out of sight, any will do: what it holds is masked.
std::vector<std::int64_t> readable_blocks(const LayerPlan& layer, const PagedRows& rows, std::int64_t keys) {
  const auto count = static_cast<std::size_t>((keys + kBlockTokens - 1) / kBlockTokens);
  const std::span<const int> blocks = rows.blocks_of(layer.window > 0).first(count);
  std::vector<std::int64_t> numbers;
  for (const int block : blocks) numbers.push_back(block >= 0 ? block : blocks.back());
  return numbers;
}

/// Every sequence has one new row: one batched product over contexts padded to the longest.
at::Tensor decode(const ModelConfig& config, const LayerPlan& layer, const Heads& heads, const PagedAttention& plan) {
  const auto sequences = static_cast<std::int64_t>(plan.sequences.size());
  std::int64_t blocks = 1;
  for (const PagedRows& rows : plan.sequences) blocks = std::max<std::int64_t>(blocks, rows.past / kBlockTokens + 1);
  std::vector<std::int64_t> table(sequences * blocks, 0), lengths;
  for (std::size_t s = 0; s < plan.sequences.size(); ++s) {
    const PagedRows& rows = plan.sequences[s];
    std::ranges::copy(readable_blocks(layer, rows, rows.past + 1),
                      table.begin() + static_cast<std::ptrdiff_t>(s) * blocks);
    lengths.push_back(rows.past + 1);
  }
  const auto device = heads.key_TKD.device();
  const at::Tensor table_SB = at::tensor(table, at::kLong).to(device);
  const at::Tensor lengths_S = at::tensor(lengths, at::kLong).to(device);
  const std::int64_t longest = blocks * kBlockTokens, repeat = config.num_heads / config.num_kv_heads;
  const at::Tensor key = plan.cache->keys(layer.index)
                             .index_select(0, table_SB)
                             .view({sequences, blocks, config.num_kv_heads, config.head_dim, kBlockTokens});
  const at::Tensor value = plan.cache->values(layer.index)
                               .index_select(0, table_SB)
                               .view({sequences, blocks, config.num_kv_heads, kBlockTokens, config.head_dim});
  const at::Tensor key_SKDL =
      key.permute({0, 2, 3, 1, 4}).reshape({sequences, config.num_kv_heads, config.head_dim, longest});
  const at::Tensor value_SKLD =
      value.permute({0, 2, 1, 3, 4}).reshape({sequences, config.num_kv_heads, longest, config.head_dim});
  const at::Tensor query = heads.query_TND.view({sequences, config.num_kv_heads, repeat, config.head_dim});
  const at::Tensor place_L = at::arange(longest, lengths_S.options()).unsqueeze(0), length_S1 = lengths_S.unsqueeze(1);
  at::Tensor hidden = place_L >= length_S1;
  if (layer.window > 0) hidden = hidden.logical_or(place_L < length_S1 - layer.window);
  const at::Tensor scores = at::matmul(query, key_SKDL) * layer.attention_scale;
  const at::Tensor weights = scores.masked_fill(hidden.view({sequences, 1, 1, longest}), -INFINITY).softmax(-1);
  const at::Tensor clean = value_SKLD.masked_fill(hidden.view({sequences, 1, longest, 1}), 0);
  return at::matmul(weights, clean).reshape({sequences, -1});
}

at::Tensor paged(const ModelConfig& config, const LayerPlan& layer, const Heads& heads, const PagedAttention& plan) {
  write_cache(layer, heads, plan);
  const bool one_row_each = std::all_of(plan.sequences.begin(), plan.sequences.end(),
                                        [](const PagedRows& rows) { return rows.end - rows.begin == 1; });
  if (one_row_each) return decode(config, layer, heads, plan);
  std::vector<at::Tensor> parts;
  for (const PagedRows& rows : plan.sequences) {
    const std::int64_t count = rows.end - rows.begin, keys = rows.past + count;
    const at::Tensor table = at::tensor(readable_blocks(layer, rows, keys), at::kLong).to(heads.key_TKD.device());
    const at::Tensor key = plan.cache->keys(layer.index)
                               .index_select(0, table)
                               .permute({1, 0, 3, 2})
                               .reshape({config.num_kv_heads, -1, config.head_dim})
                               .narrow(1, 0, keys);
    const at::Tensor value = plan.cache->values(layer.index)
                                 .index_select(0, table)
                                 .permute({1, 0, 2, 3})
                                 .reshape({config.num_kv_heads, -1, config.head_dim})
                                 .narrow(1, 0, keys);
    const at::Tensor query = heads.query_TND.narrow(0, rows.begin, count).transpose(0, 1);
    parts.push_back(attend(config, layer, query, key, value, rows.past));
  }
  return at::cat(parts, 0);
}

}  // namespace

at::Tensor portable_attention(const ModelConfig& config, const LayerPlan& layer, const at::Tensor& qkv_TD,
                              const AttentionWeights& weights, const RotaryTable& rotary, const at::Tensor& positions_T,
                              const AttentionPlan& plan) {
  const Heads heads = heads_of(config, layer, qkv_TD, weights, rotary, positions_T.to(qkv_TD.device()));
  if (const auto* in_cache = std::get_if<PagedAttention>(&plan)) {
    CARNOT_CHECK(!at::GradMode::is_enabled(), "a paged plan has no gradient");
    return paged(config, layer, heads, *in_cache);
  }
  return packed(config, layer, heads, std::get<PackedAttention>(plan));
}

}  // namespace carnot
