#include "carnot/core/engine/decoder_runner.h"

namespace carnot {

DecoderRunner::DecoderRunner(const Model& model, const CacheSize& size)
    : model_(&model), cache_(model.config(), size, model.options()) {}

at::Tensor DecoderRunner::hidden(const at::Tensor& tokens_T, const at::Tensor& positions_T,
                                 const std::vector<PagedRows>& sequences) {
  cache_.take_memory();
  return model_->hidden(tokens_T, positions_T, PagedAttention{.cache = &cache_, .sequences = sequences});
}

LogitRows DecoderRunner::logits(const at::Tensor& hidden_BH, std::span<const float> inverse_temperature_B) {
  return model_->logit_rows(hidden_BH, inverse_temperature_B);
}

}  // namespace carnot
