// gguf/pre_tokenizers.h -- what tokenizer.ggml.pre names: how text is split before bytes are merged.
#pragma once

#include <string_view>

#include "carnot/core/text/split_pattern.h"

namespace carnot {

struct GgufPreTokenizer {
  std::string_view name{};     ///< as in the file
  std::string_view pattern{};  ///< empty: GPT-2's, inside the ByteLevel step
  bool single_digits = false;  ///< split off before the pattern
  bool compose = false;        ///< NFC
  bool ignore_merges = false;
  bool begins_texts = false;  ///< with the token bos, unless the file says otherwise
};

inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view kQwen35Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|)"
    R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// As the families' own tokenizer.json have them. The first is taken for "default" and where the key is missing; of
/// two that split alike, the first is written.
inline constexpr GgufPreTokenizer kGgufPreTokenizers[] = {
    {.name = "gpt-2"},
    {.name = "smollm", .single_digits = true},
    {.name = "refact", .single_digits = true},
    {.name = "starcoder", .single_digits = true},
    {.name = "olmo", .compose = true},
    {.name = "qwen2", .pattern = kQwen2Pattern, .compose = true},
    {.name = "qwen35", .pattern = kQwen35Pattern, .compose = true},
    {.name = "llama-bpe", .pattern = kLlama3Pattern, .ignore_merges = true, .begins_texts = true},
    {.name = "lfm2", .pattern = kLlama3Pattern, .ignore_merges = true, .begins_texts = true},
    {.name = "dbrx", .pattern = kLlama3Pattern},
    {.name = "smaug-bpe", .pattern = kLlama3Pattern},
    {.name = "gpt-4o", .pattern = kGpt4oPattern},
    {.name = "tekken", .pattern = kTekkenPattern, .ignore_merges = true, .begins_texts = true},
};

}  // namespace carnot
