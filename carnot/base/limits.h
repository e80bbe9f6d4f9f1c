// base/limits.h -- how much outside input is accepted, and why not more.
//
// Beyond a limit an input is refused with a message that names the limit: a damaged or hostile file costs a bounded
// amount of memory and time, and never a crash.
#pragma once

#include <cstddef>
#include <cstdint>

namespace carnot {

/// Bytes of a regular file that is read as a whole. Its text is in memory together with what is made of it. Weights are
/// mapped, not read, and have no such limit.
inline constexpr std::size_t kMaxFileBytes = std::size_t{4} << 30;

/// Bytes of what does not say its size first: a pipe, a device (/dev/zero never ends), what an .xz file expands to
/// (600 kB can hold 4 GB).
inline constexpr std::size_t kMaxStreamBytes = std::size_t{1} << 30;

/// Memory of the .xz decoder. `xz -9` needs 65 MiB; a header may ask for 4 GiB.
inline constexpr std::uint64_t kMaxXzMemory = std::uint64_t{256} << 20;

/// Lines of a file that is read line by line. The list of them takes 16 bytes a line, however empty the lines are.
inline constexpr std::size_t kMaxLines = std::size_t{1} << 24;

/// Bytes of one JSON text: a file, or a line of one. The longest rows that are written, 256k tokens with all their
/// columns, take about 80 MB; a safetensors header may have 100 MB.
inline constexpr std::size_t kMaxJsonBytes = std::size_t{128} << 20;

/// Bytes of one line of a stream that is answered line by line.
inline constexpr std::size_t kMaxLineBytes = kMaxJsonBytes;

/// Brackets of JSON that are open at once. Reading, copying, writing and freeing a value recurse; nothing that is
/// read nests deeper than ten.
inline constexpr std::size_t kMaxJsonDepth = 64;

/// Values in one JSON text. Each takes 16 to 60 bytes in memory, from 2 bytes of text on. The largest tokenizers have
/// about a million, a row of 256k tokens about five.
inline constexpr std::size_t kMaxJsonValues = std::size_t{1} << 24;

/// Sections of a recipe within each other; brackets, too, which the YAML library descends into one by one.
inline constexpr std::size_t kMaxRecipeDepth = 16;

/// Bytes of a recipe or of a value on the command line.
inline constexpr std::size_t kMaxRecipeBytes = std::size_t{1} << 20;

/// Steps that PCRE2 may take for one match of a tokenizer's split pattern. The patterns in use take a few per byte; a
/// pattern that backtracks without end is an error here.
inline constexpr std::uint32_t kMaxMatchSteps = 10'000'000;

/// Memory of one such match, where it does without compiled code. PCRE2's own limit is 20 GB.
inline constexpr std::uint32_t kMaxMatchKilobytes = 256 << 10;

/// Bytes of a split pattern (published ones have up to 400), and groups of it within each other.
inline constexpr std::size_t kMaxPatternBytes = std::size_t{1} << 16;
inline constexpr std::uint32_t kMaxPatternDepth = 100;

/// Steps of a tokenizer's normaliser or pre-tokeniser, which split the pieces of the steps before them, one call within
/// the other. Published ones have up to four.
inline constexpr std::size_t kMaxTokenizerSteps = 16;

/// Ids of tokens index tables; this bounds their memory whatever the file says.
inline constexpr std::int64_t kMaxTokenId = (1 << 24) - 1;

/// Bytes of a safetensors header: the format's own limit.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

/// Keys of a GGUF file's metadata, and its tensors (a model of kMaxModelLayers layers has some 200,000); dimensions of
/// a tensor; what its data may be aligned to.
inline constexpr std::uint64_t kMaxGgufEntries = 1 << 18;
inline constexpr std::uint32_t kMaxGgufDimensions = 4;
inline constexpr std::uint64_t kMaxGgufAlignment = 1 << 20;

/// Bytes of a token whose merges are derived from its score: each way to cut it in two is tried. SentencePiece's own
/// limit is 16 characters unless its user raises it.
inline constexpr std::size_t kMaxScoredTokenBytes = 256;

/// Any size in a model's shape (2^24: 16 times the widest vocabulary in use), its layers, and all of its weights.
/// Products of two sizes and sums of them stay far from the ends of 64 bits.
inline constexpr int kMaxModelSize = 1 << 24;
inline constexpr int kMaxModelLayers = 1 << 14;
inline constexpr std::int64_t kMaxModelParameters = std::int64_t{1} << 42;

/// Methods in one composition. There are about twenty in all, and none may occur twice.
inline constexpr std::size_t kMaxMethods = 64;

/// What an environment's options may ask for: turns, steps, actions or searches of an episode and things shown at once,
/// and tokens or words of one response. The longest episodes in use have a few hundred steps, the longest contexts ten
/// million tokens.
inline constexpr int kMaxEpisodeSteps = 100'000;
inline constexpr int kMaxResponseTokens = 10'000'000;

/// Problems of one input that are listed; the rest is counted.
inline constexpr std::size_t kMaxProblems = 20;

}  // namespace carnot
