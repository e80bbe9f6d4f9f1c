// testing/small_tokenizer.h -- a tokenizer of a few hundred tokens, trained in a moment, for tests that need text.
#pragma once

#include "carnot/text/tokenizer.h"

namespace carnot::testing {

inline const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = [] {
    const std::vector<std::string> texts = {"<think>I look at the answer</think><answer>left</answer>",
                                            "heard task be brief system user assistant"};
    const std::string json =
        train_byte_level_bpe(texts,
                             {.vocab_size = 300, .added_tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}})
            .value();
    return Tokenizer::parse(json, "small tokenizer").value();
  }();
  return tokenizer;
}

}  // namespace carnot::testing
