// nn/sentence_encoder.h -- a BERT encoder that maps texts to vectors: mean of the last hidden states, length 1.
//
// (Devlin et al. 2019; sentence-transformers' pooling and normalisation.) Inference only. Rows of several texts are
// packed without padding; products with weights are those of nn/linear.h, so a text's vector does not depend on the
// other texts. Not thread-safe: weights are packed on first use.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/nn/linear.h"
#include "carnot/core/nn/model.h"

namespace carnot {

struct SentenceEncoderConfig {
  int vocab_size = 0;
  int hidden_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int intermediate_size = 0;
  int max_positions = 0;
  int num_types = 2;  ///< rows of the token-type table; type 0 is used
  double norm_epsilon = 1e-12;
};

class SentenceEncoder {
 public:
  /// The caller fills in the weights. REQUIRES: heads divide hidden_size.
  SentenceEncoder(const SentenceEncoderConfig& config, const at::TensorOptions& options);

  const SentenceEncoderConfig& config() const { return config_; }

  /// Every weight by its name in a BertModel: "encoder.layer.0.attention.self.query.weight".
  std::vector<NamedTensor> parameters() const;

  /// One vector of length 1 per text: [B, H]. REQUIRES: each text has 1 to max_positions ids below vocab_size.
  at::Tensor encode(std::span<const std::vector<std::int64_t>> texts) const;

 private:
  struct Linear {
    at::Tensor weight{}, bias{};
  };
  struct Norm {
    at::Tensor weight{}, bias{};
  };
  struct Layer {
    Linear query{}, key{}, value{}, attention_out{}, up{}, down{};
    Norm attention_norm{}, norm{};
    mutable PackedWeights packed_qkv{}, packed_out{}, packed_up{}, packed_down{};
  };

  at::Tensor normed(const at::Tensor& x_TH, const Norm& norm) const;
  at::Tensor attend(const at::Tensor& qkv, std::span<const std::int64_t> lengths) const;
  at::Tensor layer(const Layer& layer, const at::Tensor& x_TH, std::span<const std::int64_t> lengths) const;

  SentenceEncoderConfig config_;
  at::Tensor words_VH_{}, positions_PH_{}, types_YH_{};
  Norm embedding_norm_{};
  std::vector<Layer> layers_{};
};

}  // namespace carnot
