// text/tokenizer_tables.h -- what a tokenizer looks up while it encodes and decodes, made from a tokenizer.json.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "carnot/core/text/tokenizer_file.h"

namespace carnot {

/// The file, without its list of merges, and what follows from it. Never written after construction.
struct TokenizerTables : TokenizerFile {
  explicit TokenizerTables(TokenizerFile file);

  /// What a piece is before it is merged.
  void piece_to_tokens(std::string_view piece, std::vector<TokenId>& tokens) const;

  /// Whether no token spells the byte: it becomes the unknown token, or nothing.
  bool lacks(char byte) const { return byte_tokens[static_cast<std::uint8_t>(byte)] < 0; }

  std::array<TokenId, 128> ascii_tokens;  // of characters: their own, or else their byte's
  MergeTable merge_table;
  bool words_merge_apart;             // no merge goes over the border before a blank
  AddedTokenFinder raw_added;         // looked for in the text as it is
  AddedTokenFinder normalized_added;  // looked for after normalisation
  std::unordered_map<std::string, TokenId> added_ids;
  std::unordered_map<TokenId, std::string> decoded_otherwise;  // added tokens that are not decoded to their bytes
  std::vector<bool> is_added;                                  // by id
  std::vector<bool> is_control;                                // by id
  std::vector<bool> in_byte_runs;                              // by id: decoded with the bytes next to it
  std::vector<bool> is_whole;  // by id: a piece of exactly these bytes becomes this one token

 private:
  void bytes_to_tokens(std::string_view bytes, std::vector<TokenId>& tokens) const;
  void character_to_tokens(std::string_view character, std::vector<TokenId>& tokens) const;
};

}  // namespace carnot
