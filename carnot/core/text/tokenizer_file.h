// text/tokenizer_file.h -- what a tokenizer.json says, checked; and tokenizer.json from a folder of older files.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/text/added_tokens.h"
#include "carnot/core/text/merge_table.h"
#include "carnot/core/text/split_pattern.h"

namespace carnot {

class JsonProblems;

/// Ids need not be contiguous. Grows only through insert(); find() and bytes() are thread-safe afterwards.
class Vocabulary {
 public:
  /// `reachable`: find() may answer with it (entries outside the byte alphabet are decoded only).
  /// REQUIRES: an id that is not taken; for a reachable one, bytes that are not.
  void insert(TokenId id, std::string_view bytes, bool reachable);

  /// The reachable token of exactly these bytes, or -1.
  TokenId find(std::string_view bytes) const;

  bool contains(TokenId id) const { return id >= 0 && id < size() && entries_[id].length != kHole; }

  /// REQUIRES: contains(id).
  std::string_view bytes(TokenId id) const {
    const Entry& entry = entries_[id];
    return std::string_view(arena_).substr(entry.offset, entry.length);
  }

  /// Largest id + 1.
  TokenId size() const { return static_cast<TokenId>(entries_.size()); }

 private:
  static constexpr std::uint32_t kHole = UINT32_MAX;

  struct Entry {
    std::size_t offset = 0;
    std::uint32_t length = kHole;
  };
  struct Slot {
    std::uint32_t hash = 0;
    TokenId id = -1;
  };

  void place(Slot slot);
  void grow();

  std::string arena_;
  std::vector<Entry> entries_;                        // by id
  std::vector<Slot> slots_ = std::vector<Slot>(512);  // open addressing, linear probing, a power of two
  std::size_t used_ = 0;
};

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
  std::vector<TokenId> text_begin{};  ///< what Hugging Face puts before a text (post_processor)
};

/// The bytes that the vocabulary lacks, for people: "0x04, 0xF5 to 0xFF"; empty if it lacks none.
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

/// The normaliser, pre-tokeniser and decoder: fills all of `file` but the vocabulary, the merges and the added tokens
/// from the whole tokenizer.json; adds a problem for each part that is not computed here.
void read_pipeline(const nlohmann::json& json, TokenizerFile& file, JsonProblems& problems);

}  // namespace carnot
