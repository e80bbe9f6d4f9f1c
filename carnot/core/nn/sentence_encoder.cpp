#include "carnot/core/nn/sentence_encoder.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

at::Tensor times(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, PackedWeights& packed) {
  LinearWeights weights;
  weights.weight[0] = weight;
  weights.bias[0] = bias;
  return linear(x, weights, packed, own_kernels_take(x) ? KernelChoice::Own : KernelChoice::Portable);
}

}  // namespace

SentenceEncoder::SentenceEncoder(const SentenceEncoderConfig& config, const at::TensorOptions& options)
    : config_(config) {
  CARNOT_CHECK_GE(config.num_heads, 1);
  CARNOT_CHECK_EQ(config.hidden_size % config.num_heads, 0);
  const std::int64_t H = config.hidden_size, F = config.intermediate_size;
  const auto table = [&](std::int64_t rows) { return at::empty({rows, H}, options); };
  const auto norm = [&] { return Norm{.weight = at::empty({H}, options), .bias = at::empty({H}, options)}; };
  const auto matrix = [&](std::int64_t out, std::int64_t in) {
    return Linear{.weight = at::empty({out, in}, options), .bias = at::empty({out}, options)};
  };
  words_VH_ = table(config.vocab_size);
  positions_PH_ = table(config.max_positions);
  types_YH_ = table(config.num_types);
  embedding_norm_ = norm();
  for (int i = 0; i < config.num_layers; ++i) {
    Layer& layer = layers_.emplace_back();
    layer.query = matrix(H, H);
    layer.key = matrix(H, H);
    layer.value = matrix(H, H);
    layer.attention_out = matrix(H, H);
    layer.attention_norm = norm();
    layer.up = matrix(F, H);
    layer.down = matrix(H, F);
    layer.norm = norm();
  }
}

std::vector<NamedTensor> SentenceEncoder::parameters() const {
  std::vector<NamedTensor> all;
  const auto add = [&](const std::string& name, const auto& pair) {
    all.push_back({name + ".weight", pair.weight});
    all.push_back({name + ".bias", pair.bias});
  };
  all.push_back({"embeddings.word_embeddings.weight", words_VH_});
  all.push_back({"embeddings.position_embeddings.weight", positions_PH_});
  all.push_back({"embeddings.token_type_embeddings.weight", types_YH_});
  add("embeddings.LayerNorm", embedding_norm_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const std::string name = "encoder.layer." + std::to_string(i) + ".";
    const Layer& layer = layers_[i];
    add(name + "attention.self.query", layer.query);
    add(name + "attention.self.key", layer.key);
    add(name + "attention.self.value", layer.value);
    add(name + "attention.output.dense", layer.attention_out);
    add(name + "attention.output.LayerNorm", layer.attention_norm);
    add(name + "intermediate.dense", layer.up);
    add(name + "output.dense", layer.down);
    add(name + "output.LayerNorm", layer.norm);
  }
  return all;
}

at::Tensor SentenceEncoder::normed(const at::Tensor& x_TH, const Norm& norm) const {
  return at::layer_norm(x_TH, {config_.hidden_size}, norm.weight, norm.bias, config_.norm_epsilon);
}

// Every text attends only to itself, in both directions.
at::Tensor SentenceEncoder::attend(const at::Tensor& qkv, std::span<const std::int64_t> lengths) const {
  const std::int64_t H = config_.hidden_size, heads = config_.num_heads, D = H / heads;
  std::vector<at::Tensor> rows;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    const at::Tensor three = qkv.narrow(0, begin, length).view({length, 3, heads, D}).permute({1, 2, 0, 3});
    const at::Tensor weights =
        at::softmax(at::matmul(three[0], three[1].transpose(1, 2)) / std::sqrt(static_cast<double>(D)), -1);
    rows.push_back(at::matmul(weights, three[2]).transpose(0, 1).reshape({length, H}));
    begin += length;
  }
  return at::cat(rows);
}

at::Tensor SentenceEncoder::layer(const Layer& layer, const at::Tensor& x_TH,
                                  std::span<const std::int64_t> lengths) const {
  LinearWeights qkv;
  qkv.weight = {layer.query.weight, layer.key.weight, layer.value.weight};
  qkv.bias = {layer.query.bias, layer.key.bias, layer.value.bias};
  const KernelChoice kernels = own_kernels_take(x_TH) ? KernelChoice::Own : KernelChoice::Portable;
  const at::Tensor attended = attend(linear(x_TH, qkv, layer.packed_qkv, kernels), lengths);
  const at::Tensor x =
      normed(x_TH + times(attended, layer.attention_out.weight, layer.attention_out.bias, layer.packed_out),
             layer.attention_norm);
  const at::Tensor up = times(x, layer.up.weight, layer.up.bias, layer.packed_up);
  // One text at a time: an operator can compute the last few elements with another loop.
  for (std::int64_t begin = 0; const std::int64_t length : lengths) {
    at::Tensor rows = up.narrow(0, begin, length);
    at::gelu_(rows);
    begin += length;
  }
  return normed(x + times(up, layer.down.weight, layer.down.bias, layer.packed_down), layer.norm);
}

at::Tensor SentenceEncoder::encode(std::span<const std::vector<std::int64_t>> texts) const {
  const at::NoGradGuard no_grad;
  if (texts.empty()) return at::empty({0, config_.hidden_size}, words_VH_.options());
  std::vector<std::int64_t> ids, places, lengths;
  for (const auto& text : texts) {
    CARNOT_CHECK(!text.empty() && std::ssize(text) <= config_.max_positions, "a text of a length that has positions");
    lengths.push_back(std::ssize(text));
    for (std::int64_t i = 0; i < std::ssize(text); ++i) {
      CARNOT_CHECK(text[i] >= 0 && text[i] < config_.vocab_size, "an id of the vocabulary");
      ids.push_back(text[i]);
      places.push_back(i);
    }
  }
  const auto indices = [&](const std::vector<std::int64_t>& values) {
    return at::tensor(values, at::TensorOptions(at::kLong)).to(words_VH_.device());
  };
  at::Tensor x_TH =
      words_VH_.index_select(0, indices(ids)) + positions_PH_.index_select(0, indices(places)) + types_YH_.select(0, 0);
  x_TH = normed(x_TH, embedding_norm_);
  for (const Layer& one : layers_) x_TH = layer(one, x_TH, lengths);

  std::vector<at::Tensor> means;
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    means.push_back(x_TH.narrow(0, begin, length).mean(0));
    begin += length;
  }
  const at::Tensor pooled_BH = at::stack(means);
  return pooled_BH / pooled_BH.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12);
}

}  // namespace carnot
