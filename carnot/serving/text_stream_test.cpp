#include "carnot/serving/text_stream.h"

#include <gtest/gtest.h>

#include "carnot/core/base/check.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/utf8.h"
#include "testing/small_tokenizer.h"

namespace carnot {
namespace {

using testing::small_tokenizer;

/// The text in tokens that begin and end anywhere: at each place, any token whose bytes are there.
std::vector<TokenId> any_tokens(std::string_view text, RandomStream& random) {
  std::vector<TokenId> tokens;
  while (!text.empty()) {
    std::vector<TokenId> fitting;
    for (TokenId id = 0; id < small_tokenizer().vocab_size(); ++id)
      if (!small_tokenizer().is_added(id) && text.starts_with(small_tokenizer().bytes_of(id))) fitting.push_back(id);
    tokens.push_back(random.pick(fitting));
    text.remove_prefix(small_tokenizer().bytes_of(tokens.back()).size());
  }
  return tokens;
}

struct Streamed {
  std::string text{};
  std::vector<std::string> pieces{};
  std::optional<std::string> stop{};
};

Streamed streamed(const std::vector<TokenId>& tokens, const std::vector<std::string>& stops) {
  TextStream stream(small_tokenizer(), stops);
  Streamed out;
  for (const TokenId token : tokens) {
    out.pieces.push_back(stream.push(token));
    if (stream.stop_string()) break;
  }
  out.pieces.push_back(stream.finish());
  for (const std::string& piece : out.pieces) out.text += piece;
  out.stop = stream.stop_string();
  return out;
}

/// By definition: byte by byte, until a stop string is at the end.
Streamed plain(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    Streamed out;
    for (const std::string& stop : stops)
      if (std::string_view(text).substr(0, end).ends_with(stop) && (!out.stop || stop.size() > out.stop->size()))
        out.stop = stop;
    if (!out.stop) continue;
    out.text = text.substr(0, end - out.stop->size());
    return out;
  }
  return {.text = text};
}

TEST(TextStream, CutsWhereTheFirstStopStringIsCompleteWhateverTheTokens) {
  const std::vector<std::string> parts{"a",      "b",  "ab", "answer", "</answer>", "\u00e9",
                                       "\u4f60", "</", "<",  "think>", " ",         "ans"};
  RandomStream random(1);
  int stopped = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (auto n = random.below(12); n > 0; --n) text += random.pick(parts);
    std::vector<std::string> stops;
    for (auto n = random.below(4); n > 0; --n) {
      std::string stop = random.pick(parts);
      if (random.chance(0.5)) stop += random.pick(parts);
      stops.push_back(stop);
    }
    const Streamed expected = plain(text, stops), found = streamed(any_tokens(text, random), stops);
    ASSERT_EQ(found.text, expected.text) << text;
    ASSERT_EQ(found.stop, expected.stop) << text;
    stopped += found.stop ? 1 : 0;
    for (const std::string& piece : found.pieces)
      ASSERT_EQ(valid_prefix(piece), piece.size()) << "a character was split";
  }
  EXPECT_GT(stopped, 500);
}

TEST(TextStream, GivesTextOutAsSoonAsItIsCertain) {
  RandomStream random(2);
  std::vector<TokenId> bytes;
  for (const char c : std::string("x</y")) bytes.push_back(any_tokens(std::string(1, c), random).front());
  const Streamed found = streamed(bytes, {"</answer>"});
  EXPECT_EQ(found.pieces, (std::vector<std::string>{"x", "", "", "</y", ""}));
}

TEST(TextStream, BytesOfACharacterThatNeverEndsComeAtTheEnd) {
  TextStream stream(small_tokenizer(), {});
  TokenId first = -1;
  for (TokenId id = 0; id < small_tokenizer().vocab_size(); ++id)
    if (small_tokenizer().bytes_of(id) == "\xe4") first = id;
  ASSERT_GE(first, 0);
  EXPECT_EQ(stream.push(first), "");
  EXPECT_EQ(stream.finish(), "\xe4");
}

TEST(TextStream, RefusesWhatWouldStopAtOnce) { EXPECT_THROW(TextStream(small_tokenizer(), {""}), CheckError); }

}  // namespace
}  // namespace carnot
