// base/limits.h -- how much outside input is accepted, and why not more.
//
// Input beyond a limit is refused with a message that names the limit: a damaged or hostile file costs a bounded
// amount of memory and time, and never causes a crash.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carnot {

/// Bytes of a regular file that is read as a whole. Its text is in memory together with the values parsed from it.
/// Weights are mapped, not read, and have no such limit.
inline constexpr std::size_t kMaxFileBytes = std::size_t{4} << 30;

/// Bytes of input of unknown size: a pipe, a device (/dev/zero never ends), the content of an .xz file (600 kB can hold
/// 4 GB).
inline constexpr std::size_t kMaxStreamBytes = std::size_t{1} << 30;

/// Memory of the .xz decoder. `xz -9` needs 65 MiB; a header can request 4 GiB.
inline constexpr std::uint64_t kMaxXzMemory = std::uint64_t{256} << 20;

/// Lines of a file that is read line by line. The list of them takes 16 bytes per line, even if the lines are empty.
inline constexpr std::size_t kMaxLines = std::size_t{1} << 24;

/// Bytes of one JSON text: a file, or a line of one. The longest rows written, 256k tokens with all their columns, take
/// about 80 MB; a safetensors header can have 100 MB.
inline constexpr std::size_t kMaxJsonBytes = std::size_t{128} << 20;

/// Bytes of one line of a stream that is processed line by line.
inline constexpr std::size_t kMaxLineBytes = kMaxJsonBytes;

/// Nesting depth of JSON. Reading, copying, writing and freeing a value are recursive; nothing that is read nests
/// deeper than ten.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// Values in one JSON text. Each takes 16 to 60 bytes of memory and at least 2 bytes of text. The largest tokenizers
/// have about a million, a row of 256k tokens about five.
inline constexpr std::size_t kMaxJsonValues = std::size_t{1} << 24;

/// Nesting depth of a recipe's sections, and of brackets, which the YAML library parses recursively.
inline constexpr std::size_t kMaxRecipeDepth = 16;

/// Bytes of a recipe or of a value on the command line.
inline constexpr std::size_t kMaxRecipeBytes = std::size_t{1} << 20;

/// Steps that PCRE2 can take for one match of a tokenizer's split pattern. The patterns in use take a few per byte; a
/// pattern with excessive backtracking is reported as an error.
inline constexpr std::uint32_t kMaxMatchSteps = 10'000'000;

/// Memory of one such match without compiled code. PCRE2's own limit is 20 GB.
inline constexpr std::uint32_t kMaxMatchKilobytes = 256 << 10;

/// Bytes of a split pattern (published ones have up to 400), and the nesting depth of its groups.
inline constexpr std::size_t kMaxPatternBytes = std::size_t{1} << 16;
inline constexpr std::uint32_t kMaxPatternDepth = 100;

/// Steps of a tokenizer's normaliser or pre-tokeniser; each splits the pieces of the steps before it, recursively.
/// Published ones have up to four.
inline constexpr std::size_t kMaxTokenizerSteps = 16;

/// Token ids are used as table indices; this bounds the tables' memory whatever the file says.
inline constexpr std::int64_t kMaxTokenId = (1 << 24) - 1;

/// Bytes of a safetensors header: the limit in the format's definition.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Entries of a GGUF file's metadata, and its tensors (a model of kMaxModelLayers layers has some 200,000); dimensions
/// of a tensor; alignment of its data.
inline constexpr std::uint64_t kMaxGgufEntries = 1 << 18;
inline constexpr std::uint32_t kMaxGgufDimensions = 4;
inline constexpr std::uint64_t kMaxGgufAlignment = 1 << 20;

/// Bytes of a token whose merges are derived from its score: every way to cut it in two is tried. SentencePiece's own
/// limit is 16 characters unless the user raises it.
inline constexpr std::size_t kMaxScoredTokenBytes = 256;

/// Any size in a model's shape (2^24: 16 times the widest vocabulary in use), its layers, the experts of one, and all
/// of its weights. Sums and products of two sizes stay far below the limits of 64 bits.
inline constexpr int kMaxModelSize = 1 << 24;
inline constexpr int kMaxModelLayers = 1 << 14;
inline constexpr int kMaxModelExperts = 1 << 12;
inline constexpr std::int64_t kMaxModelParameters = std::int64_t{1} << 42;

/// Methods in one composition. There are about twenty in all, and none can occur twice.
inline constexpr std::size_t kMaxMethods = 64;

/// Limits of an environment's options: turns, steps, actions or searches of an episode, things shown at once, and
/// tokens or words of one response. The longest episodes in use have a few hundred steps, the longest contexts ten
/// million tokens.
inline constexpr int kMaxEpisodeSteps = 100'000;
inline constexpr int kMaxResponseTokens = 10'000'000;

/// Problems of one input that are listed; the others are only counted.
inline constexpr std::size_t kMaxProblems = 20;

}  // namespace carnot
