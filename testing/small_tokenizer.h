// testing/small_tokenizer.h -- a tokenizer of a few hundred tokens, trained in moments, for tests that need text.
#pragma once

#include <string>
#include <vector>

#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot::testing {

inline const std::string& small_tokenizer_json() {
  static const std::string json = [] {
    const std::vector<std::string> texts = {"<think>I look at the answer</think><answer>left</answer>",
                                            "heard task be brief system user assistant"};
    return train_byte_level_bpe(texts,
                                {.vocab_size = 300, .added_tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}})
        .value();
  }();
  return json;
}

inline const Tokenizer& small_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::parse(small_tokenizer_json(), "small tokenizer").value();
  return tokenizer;
}

/// A string on which the split pattern of backtracking_tokenizer() backtracks endlessly.
inline const std::string kBacktracks = std::string(60, 'a') + "c";

inline const Tokenizer& backtracking_tokenizer() {
  static const Tokenizer tokenizer = [] {
    std::string json = small_tokenizer_json();
    const std::string key = "\"Regex\":";
    const std::size_t open = json.find('"', json.find(key) + key.size());
    std::size_t close = open + 1;
    while (json[close] != '"') close += json[close] == '\\' ? 2 : 1;
    json.replace(open, close + 1 - open, "\"(a+)+$\"");
    return Tokenizer::parse(json, "backtracking tokenizer").value();
  }();
  return tokenizer;
}

}  // namespace carnot::testing
