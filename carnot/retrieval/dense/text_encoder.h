// retrieval/dense/text_encoder.h -- what turns texts into vectors, as the rooms below LibTorch see it.
//
// Sentence encoders are computed in rooms above this one (hf/sentence_encoder_folder.h). A program that links them says
// so once, when it starts; from then on whoever searches by vectors opens them by name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct TextEncoder {
  /// A vector for each text. Called by one thread at a time.
  std::function<std::vector<std::vector<float>>(std::span<const std::string>)> encode{};
  int dimensions = 0;
  std::string mark{};  ///< tells what it computes from what others compute
};

/// Opens an encoder by the name of its folder, or by its id on the hub.
using TextEncoderOpener = std::function<Result<TextEncoder>(const std::string& model)>;

/// Replaces the opener and returns the one before. Called while no one opens encoders.
TextEncoderOpener set_text_encoder_opener(TextEncoderOpener opener);

/// The error says what is wrong with the folder, or that this program has no opener.
Result<TextEncoder> open_text_encoder(const std::string& model);

}  // namespace carnot
