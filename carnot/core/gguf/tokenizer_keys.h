// gguf/tokenizer_keys.h -- a tokenizer's keys in a GGUF file, and the types of its tokens.
#pragma once

#include <cstdint>

namespace carnot::gguf_keys {

inline constexpr const char* kModel = "tokenizer.ggml.model";  ///< "gpt2": byte-level BPE; "llama": SentencePiece's
inline constexpr const char* kPre = "tokenizer.ggml.pre";      ///< how text is split (gguf/pre_tokenizers.h)
inline constexpr const char* kTokens = "tokenizer.ggml.tokens";
inline constexpr const char* kTokenTypes = "tokenizer.ggml.token_type";
inline constexpr const char* kMerges = "tokenizer.ggml.merges";  ///< of byte-level BPE
inline constexpr const char* kScores = "tokenizer.ggml.scores";  ///< of SentencePiece's
inline constexpr const char* kAddSpacePrefix = "tokenizer.ggml.add_space_prefix";
inline constexpr const char* kAddBos = "tokenizer.ggml.add_bos_token";  ///< at the beginning of each text
inline constexpr const char* kAddEos = "tokenizer.ggml.add_eos_token";  ///< at its end
inline constexpr const char* kBos = "tokenizer.ggml.bos_token_id";
inline constexpr const char* kEnds[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id"};  ///< each of them ends a message
inline constexpr const char* kPad = "tokenizer.ggml.padding_token_id";
inline constexpr const char* kUnknown = "tokenizer.ggml.unknown_token_id";
inline constexpr const char* kChatTemplate = "tokenizer.chat_template";

/// Values of kTokenTypes.
enum TokenType : std::int32_t { kTypeNormal = 1, kTypeUnknown, kTypeControl, kTypeUserDefined, kTypeUnused, kTypeByte };

}  // namespace carnot::gguf_keys
