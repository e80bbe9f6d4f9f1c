// text/tokenizer.h -- BPE: Hugging Face tokenizer.json (or vocab.json + merges.txt) in, token ids out and back.
//
// Text is NFC-normalised where the file says so, split by the file's pattern (PCRE2), mapped to bytes and merged; or,
// as SentencePiece does it (Llama 2, Mistral), merged character by character with bytes for what is not a token. Added
// tokens (<|im_end|>, <think>, ...) are recognised in the text first. Immutable after loading; thread-safe.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/text/added_tokens.h"

namespace carnot {

/// What control tokens in a text are: the added tokens that the file marks special, such as <|im_end|>.
enum class ControlTokens { Tokens, Text };

/// What precedes a text that is encoded by itself. It matters to tokenizers that put a space before text.
enum class TextBefore { Nothing, AddedToken, Text };

class Tokenizer {
 public:
  /// `path`: a tokenizer.json, or a folder with tokenizer.json or vocab.json + merges.txt. Says which part of the
  /// file asks for something that is not computed here. All of them may be compressed (.xz). The older pair of files
  /// is read as Qwen2's, with the added tokens of a tokenizer_config.json or tokenizer_description.json next to it.
  static Result<Tokenizer> load(const std::filesystem::path& path);

  /// From the text of a tokenizer.json; `name` is for error messages.
  static Result<Tokenizer> parse(std::string_view json, const std::string& name);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  /// Token ids of `text`; added tokens in it become their ids. No token is put before or after. Bytes that are not
  /// UTF-8 become their byte tokens. A byte that the vocabulary lacks becomes the file's unknown token, or nothing
  /// where it names none, as with Hugging Face. No space is put where `before` says that text continues. Control tokens
  /// that reach into one of `contents`, ranges of the text in order and apart, are spelled as other text is.
  /// An error where the file's split pattern takes more steps on this text than base/limits.h allows.
  Result<std::vector<TokenId>> try_encode(std::string_view text, TextBefore before = TextBefore::Nothing,
                                          std::span<const TextRange> contents = {}) const;

  /// The same. REQUIRES: a text within the limit of the split pattern.
  std::vector<TokenId> encode(std::string_view text, TextBefore before = TextBefore::Nothing,
                              std::span<const TextRange> contents = {}) const {
    return try_encode(text, before, contents).value();
  }

  /// Token ids of a text that may come from anywhere: control tokens in it are spelled as other text is. An error as
  /// of try_encode().
  Result<std::vector<TokenId>> try_encode_content(std::string_view text, TextBefore before = TextBefore::Nothing) const;

  /// The same. REQUIRES: a text within the limit of the split pattern.
  std::vector<TokenId> encode_content(std::string_view text, TextBefore before = TextBefore::Nothing) const {
    return try_encode_content(text, before).value();
  }

  /// Token ids of a text that begins a sequence, as Hugging Face encodes it by default: behind text_begin(), unless it
  /// begins with these tokens itself; no token is put after it. An error as of try_encode().
  Result<std::vector<TokenId>> try_encode_from_begin(std::string_view text) const;

  /// The tokens that the file's post_processor puts before a text: <bos> of Llama, Mistral and Gemma; none of Qwen.
  /// Chat formats write them themselves.
  std::span<const TokenId> text_begin() const;

  /// `text` as it is tokenised: NFC where the file says so. decode(encode(text)) for a tokenizer that puts no blank
  /// before the text, whose added tokens take none, and which has every byte.
  std::string normalize(std::string_view text, ControlTokens control = ControlTokens::Tokens) const;

  /// Bytes of the ids, added tokens included. An invalid id is a bug (CheckError).
  std::string decode(std::span<const TokenId> ids) const;

  /// What Hugging Face answers, always UTF-8: U+FFFD for bytes that are not a character, without the blank that a
  /// SentencePiece file's encode() puts before a text, added tokens as the file's decoder reads them ("caf\u00E9" of a
  /// byte-level file ends in the one byte 0xE9 there).
  std::string decode_whole(std::span<const TokenId> ids) const;

  /// Whether encode() may put blanks that the text does not have.
  bool puts_blanks() const;

  /// The bytes of one token.
  std::string_view bytes_of(TokenId id) const;

  /// Which part of `text`, as normalize() has it, the token spells that comes next behind `offset` in encode(text): a
  /// blank that was put before the text is not part of it, nor are bytes before it that became nothing.
  TextRange place_of(TokenId id, std::string_view text, std::size_t offset) const;

  /// The id of an added token or vocabulary entry with exactly this text.
  std::optional<TokenId> id_of(std::string_view text) const;

  bool has(TokenId id) const;  ///< ids need not be contiguous
  bool is_added(TokenId id) const;
  bool is_control(TokenId id) const;  ///< an added token that the file marks special
  int vocab_size() const;             ///< largest id + 1

  /// The tokenizer.json it was loaded from or trained to; written with every checkpoint.
  const std::string& json() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Turns a stream of tokens into text without ever splitting a UTF-8 character.
class StreamingDecoder {
 public:
  explicit StreamingDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  /// Text that is complete after this token; bytes of an unfinished character wait for the next one.
  std::string push(TokenId id);
  /// The bytes still waiting, as they are.
  std::string flush();

 private:
  const Tokenizer* tokenizer_;
  std::string waiting_;
};

}  // namespace carnot
