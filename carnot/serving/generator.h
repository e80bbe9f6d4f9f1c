// serving/generator.h -- completions of prompts, many at a time, through the rollout engine.
//
// A text is a function of its prompt, the options, and its two numbers: the prompt's and the sample's. What else is
// generated, and how much at a time, changes no bit of it (with Carnot's kernels on the CPU).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/nn/model.h"
#include "carnot/core/text/tokenizer.h"
#include "carnot/serving/text_batch.h"

namespace carnot {

struct GenerateOptions {
  SamplingOptions sampling{.temperature = 0};
  int samples = 1;       ///< texts of a prompt
  int max_tokens = 512;  ///< of a text; where the model's positions end earlier, up to there
  std::vector<TokenId> stop_tokens{};
  std::vector<std::string> stop_strings{};
  std::uint64_t seed = 0;
  int batch = 32;  ///< texts in work at a time
  int cache_tokens =
      0;  ///< positions of the KV cache; 0: enough for `batch`, at most 65536. Never less than one text needs
};

struct GeneratedText {
  std::size_t prompt = 0;
  int sample = 0;
  std::vector<TokenDraw> draws{};  ///< every sampled token, one that ended the text included
  std::string text{};              ///< without that token, and up to the stop string; bytes as the tokens have them
  Finish finish = Finish::Length;
  std::string stop_string{};  ///< that ended it
};

/// Callbacks of generate(). A text's pieces come as it is sampled; whole texts come in the order of
/// prompts and samples. Where an answer is false, generation ends.
struct GenerateEvents {
  std::function<void(std::size_t prompt, int sample, std::string_view text)> on_piece{};  ///< may be null
  std::function<bool(const GeneratedText&)> on_text{};
  std::function<bool()> go_on = [] { return true; };  ///< asked between steps
};

/// False if it was ended early. REQUIRES: prompts of at least one token, shorter than the model's positions.
bool generate(const Model& model, const Tokenizer& tokenizer, std::span<const std::vector<TokenId>> prompts,
              const GenerateOptions& options, const GenerateEvents& events);

}  // namespace carnot
