// testing/qwen2_tokenizer.h -- tests of a tokenizer in Qwen2.5's files: with a small vocabulary and with Qwen's.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "carnot/core/text/tokenizer.h"
#include "testing/missing.h"
#include "testing/paths.h"

namespace carnot::testing {

/// A folder with vocab.json, merges.txt, a description and Qwen2.5's added tokens behind 700 tokens
/// (tools/golden/tokenizer_corpus.py).
inline std::string small_qwen2_folder() { return source_path("tests/golden/tokenizer/qwen2_small"); }

/// REQUIRES: published_data() is not empty.
inline std::string published_qwen2_folder() { return published_path("tokenizer/qwen2"); }

/// To derive from. The parameter says which vocabulary; tests of the published one are skipped where it is missing.
class Qwen2Tokenizer : public ::testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    if (published()) CARNOT_NEEDS_PUBLISHED_DATA();
  }

  static bool published() { return GetParam() == "Published"; }
  static std::string folder() { return published() ? published_qwen2_folder() : small_qwen2_folder(); }
  static TokenId first_added() { return published() ? 151643 : 700; }

  static const Tokenizer& qwen() {
    static const Tokenizer small = Tokenizer::load(small_qwen2_folder()).value();
    if (!published()) return small;
    static const Tokenizer large = Tokenizer::load(published_qwen2_folder()).value();
    return large;
  }
};

/// Instantiates a suite that derives from Qwen2Tokenizer.
#define CARNOT_WITH_EACH_QWEN2(Suite)                                                  \
  INSTANTIATE_TEST_SUITE_P(Vocabulary, Suite, ::testing::Values("Small", "Published"), \
                           [](const auto& info) { return std::string(info.param); })

}  // namespace carnot::testing
