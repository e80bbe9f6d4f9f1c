#include "carnot/retrieval/sentence_encoders/sentence_encoders.h"

#include <ATen/Parallel.h>

#include <memory>

#include "carnot/core/hf/hub_cache.h"
#include "carnot/core/hf/sentence_encoder_folder.h"
#include "carnot/retrieval/dense/dense_retriever.h"

namespace carnot {
namespace {

Result<TextEncoder> open_sentence_encoder(const std::string& model) {
  CARNOT_ASSIGN_OR_RETURN(const auto folder, pretrained_folder(model));
  CARNOT_ASSIGN_OR_RETURN(auto loaded, load_sentence_encoder(folder));
  at::set_num_threads(1);  // the products share kernel_pool(); what LibTorch does between them is short
  const auto encoder = std::make_shared<const SentenceEncoderFolder>(std::move(loaded));
  return TextEncoder{.encode = [encoder](std::span<const std::string> texts) { return encoder->encode(texts); },
                     .dimensions = encoder->dimensions(),
                     .mark = encoder->mark};
}

}  // namespace

void offer_sentence_encoders() { set_text_encoder_opener(open_sentence_encoder); }

}  // namespace carnot
