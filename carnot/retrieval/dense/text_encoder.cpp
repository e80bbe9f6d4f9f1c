#include "carnot/retrieval/dense/text_encoder.h"

#include <utility>

namespace carnot {
namespace {

TextEncoderOpener& encoder_opener() {
  static TextEncoderOpener opener;
  return opener;
}

}  // namespace

TextEncoderOpener set_text_encoder_opener(TextEncoderOpener opener) {
  return std::exchange(encoder_opener(), std::move(opener));
}

Result<TextEncoder> open_text_encoder(const std::string& model) {
  if (!encoder_opener()) return Error{model + ": this program computes no sentence encoders"};
  return encoder_opener()(model);
}

}  // namespace carnot
