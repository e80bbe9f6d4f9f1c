// text/tokenizer_file.h -- what a tokenizer.json says, checked; and tokenizer.json from a folder of older files.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/text/added_tokens.h"
#include "carnot/core/text/merge_table.h"
#include "carnot/core/text/split_pattern.h"
#include "carnot/core/text/vocabulary.h"

namespace carnot {

/// One step before the merges: what it puts before a piece, and where it splits it.
struct SplitStep {
  bool add_prefix_space = false;  ///< a blank before each piece that has none
  std::optional<SplitPattern> pattern{};
};

/// Before which text a SentencePiece file puts a blank.
enum class BlankBefore {
  Nothing,
  Sections,   ///< each part of the text between added tokens that are looked for in raw text
  Stretches,  ///< each part between any added tokens, unless it begins with a blank
  Text,       ///< the text as a whole, unless it begins with a blank or an added token
};

/// The parts of a tokenizer.json that are computed here. Added tokens are in the vocabulary too.
struct TokenizerFile {
  bool compose = false;  ///< NFC
  /// True: bytes are merged (GPT-2 and after). False: characters are, and bytes where a character is no token
  /// (SentencePiece's BPE with byte_fallback); blanks are written as U+2581 in the file, as blanks in the vocabulary.
  bool byte_level = true;
  BlankBefore blank_before = BlankBefore::Nothing;
  bool normalizer_marks_blanks = false;  ///< so added tokens of normalised text are looked for among U+2581
  bool strip_first_blank = false;        ///< of decoded text
  std::vector<SplitStep> steps{};
  Vocabulary vocabulary{};
  std::array<TokenId, 256> byte_tokens{};  ///< -1: a byte that the vocabulary lacks, only where byte_level
  TokenId unknown = -1;                    ///< what such a byte becomes; -1: nothing
  bool fuse_unknown = false;               ///< one unknown token for a run of them within a piece
  std::vector<Merge> merges{};
  bool ignore_merges = false;  ///< a piece that is in the vocabulary is one token, whatever the merges
  std::vector<AddedToken> added{};
};

/// The bytes that the vocabulary lacks, for people: "0x04, 0xF5 to 0xFF"; empty if there are none.
std::string lacking_bytes(const TokenizerFile& file);

/// SentencePiece's spelling of blanks undone: U+2581 becomes a blank.
std::string with_blanks(std::string_view text);

/// Reads the text of a tokenizer.json. Refuses what is not computed here, naming every such key; `name` is
/// before each of them.
Result<TokenizerFile> read_tokenizer_json(std::string_view text, const std::string& name);

/// A tokenizer.json for a folder with vocab.json and merges.txt (each also as .xz). The normaliser and the pattern
/// are Qwen2's. Added tokens: added_tokens_decoder of tokenizer_config.json, or the list added_tokens (else
/// added_tokens_qwen2_5) of tokenizer_description.json, whose pre_tokenizer_regex counts as well; none without these.
Result<std::string> tokenizer_json_of_folder(const std::filesystem::path& folder);

}  // namespace carnot
