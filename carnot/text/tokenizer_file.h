// text/tokenizer_file.h -- what a tokenizer.json says, checked; and tokenizer.json from a folder of older files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/base/result.h"
#include "carnot/text/added_tokens.h"
#include "carnot/text/merge_table.h"
#include "carnot/text/split_pattern.h"
#include "carnot/text/vocabulary.h"

namespace carnot {

/// One step before the merges: what it puts before a piece, and where it splits it.
struct SplitStep {
  bool add_prefix_space = false;  ///< a blank before each piece that has none
  std::optional<SplitPattern> pattern{};
};

/// The parts of a tokenizer.json that are computed here. Added tokens are in the vocabulary too.
struct TokenizerFile {
  bool compose = false;  ///< NFC
  std::vector<SplitStep> steps{};
  Vocabulary vocabulary{};
  std::vector<Merge> merges{};
  bool ignore_merges = false;  ///< a piece that is in the vocabulary is one token, whatever the merges
  std::vector<AddedToken> added{};
};

/// Reads the text of a tokenizer.json. Refuses what is not computed here, naming every such key; `name` stands
/// before each of them.
Result<TokenizerFile> read_tokenizer_json(std::string_view text, const std::string& name);

/// A tokenizer.json for a folder with vocab.json and merges.txt (each also as .xz). The normaliser and the pattern
/// are Qwen2's. Added tokens: added_tokens_decoder of tokenizer_config.json, or the list added_tokens (else
/// added_tokens_qwen2_5) of tokenizer_description.json, whose pre_tokenizer_regex counts as well; none without these.
Result<std::string> tokenizer_json_of_folder(const std::filesystem::path& folder);

}  // namespace carnot
