// testing/chain_model.h -- a model whose next token depends only on the last one, as a test specifies: for policies
// that must say something word for word. Needs LibTorch.
#pragma once

#include <map>

#include "carnot/core/data/tokens.h"
#include "carnot/core/nn/model.h"

namespace carnot::testing {

/// After token t, almost certainly next.at(t); after others, all tokens are equally likely.
inline Model chain_model(int vocab_size, int max_positions, const std::map<TokenId, TokenId>& next) {
  const Model model(ModelConfig{.vocab_size = vocab_size,
                                .hidden_size = vocab_size,
                                .intermediate_size = 16,
                                .num_layers = 1,
                                .num_heads = 1,
                                .num_kv_heads = 1,
                                .head_dim = 16,
                                .tied_head = false,
                                .max_positions = max_positions},
                    1, at::TensorOptions().dtype(at::kFloat));
  for (const NamedTensor& weight : model.parameters()) {
    if (weight.name.ends_with("o_proj.weight") || weight.name.ends_with("down_proj.weight")) weight.tensor.zero_();
    if (weight.name == "model.embed_tokens.weight") {
      weight.tensor.zero_();
      weight.tensor.fill_diagonal_(1);
    }
    if (weight.name == "lm_head.weight") {
      weight.tensor.zero_();
      for (const auto& [last, following] : next) weight.tensor.data_ptr<float>()[following * vocab_size + last] = 5;
    }
  }
  return model.clone();
}

}  // namespace carnot::testing
