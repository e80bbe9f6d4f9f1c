#include "carnot/core/text/tokenizer_tables.h"

#include <algorithm>

#include "carnot/core/base/utf8.h"
#include "carnot/core/text/byte_alphabet.h"

namespace carnot {
namespace {

/// The token as it occurs in the text that is searched.
std::string searched_content(const AddedToken& token, const TokenizerFile& file) {
  if (!token.normalized) return token.content;
  std::string content = file.compose ? compose(token.content) : token.content;
  if (file.normalizer_marks_blanks) content = with_blanks(content);
  if (file.blank_before == BlankBefore::Sections) content.insert(0, 1, ' ');
  return content;
}

/// The added tokens with this `normalized` flag, their contents as they occur in the text that is searched.
std::vector<AddedToken> added_tokens_with(const TokenizerFile& file, bool normalized) {
  std::vector<AddedToken> chosen;
  for (const AddedToken& token : file.added) {
    if (token.normalized != normalized) continue;
    chosen.push_back(token);
    chosen.back().content = searched_content(token, file);
  }
  return chosen;
}

/// What Hugging Face decodes an added token to: its decoder takes it for one that is spelled as the vocabulary's are.
std::string decoded_content(const AddedToken& token, const TokenizerFile& file) {
  const std::string content = searched_content(token, file);
  return file.byte_level ? symbols_to_bytes(content).value_or(content) : with_blanks(content);
}

std::array<TokenId, 128> find_ascii_tokens(const Vocabulary& vocabulary, const std::array<TokenId, 256>& byte_tokens) {
  std::array<TokenId, 128> tokens{};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenId whole = vocabulary.find(std::string(1, static_cast<char>(i)));
    tokens[i] = whole >= 0 ? whole : byte_tokens[i];
  }
  return tokens;
}

/// Which vocabulary entries their own bytes merge into. Most pieces of a text are such, and need no merging.
std::vector<bool> find_whole_tokens(const TokenizerTables& tables) {
  const Vocabulary& vocabulary = tables.vocabulary;
  std::vector<bool> whole(vocabulary.size(), tables.ignore_merges);
  if (tables.ignore_merges) return whole;
  std::vector<TokenId> tokens;
  MergeTable::Scratch scratch;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.contains(id)) continue;
    tables.piece_to_tokens(vocabulary.bytes(id), tokens);
    tables.merge_table.merge(tokens, scratch);
    whole[id] = tokens == std::vector<TokenId>{id};
  }
  return whole;
}

/// True if no merge joins what ends in a word to what begins with a blank: then each word may be merged by itself,
/// with the blanks before it.
bool merges_keep_words_apart(const Vocabulary& vocabulary, const std::vector<Merge>& merges) {
  return std::all_of(merges.begin(), merges.end(), [&](const Merge& merge) {
    return !vocabulary.bytes(merge.right).starts_with(' ') || vocabulary.bytes(merge.left).ends_with(' ');
  });
}

}  // namespace

TokenizerTables::TokenizerTables(TokenizerFile file)
    : TokenizerFile(std::move(file)),
      ascii_tokens(find_ascii_tokens(vocabulary, byte_tokens)),
      merge_table(merges),
      words_merge_apart(!byte_level && merges_keep_words_apart(vocabulary, merges)),
      raw_added(added_tokens_with(*this, false)),
      normalized_added(added_tokens_with(*this, true), normalizer_marks_blanks ? Blank::Mark : Blank::WhiteSpace),
      is_added(vocabulary.size()),
      is_control(vocabulary.size()),
      in_byte_runs(vocabulary.size()) {
  for (const AddedToken& token : added) {
    added_ids[token.content] = token.id;
    is_added[token.id] = true;
    is_control[token.id] = token.special;
    std::string decoded = decoded_content(token, *this);
    if (decoded != vocabulary.bytes(token.id)) decoded_otherwise[token.id] = std::move(decoded);
  }
  if (!byte_level)
    for (const TokenId id : byte_tokens) in_byte_runs[id] = true;
  is_whole = find_whole_tokens(*this);
  merges = {};
  for (std::size_t id = 0; id < is_whole.size(); ++id) is_whole[id] = is_whole[id] && !is_control[id];
}

void TokenizerTables::piece_to_tokens(std::string_view piece, std::vector<TokenId>& tokens) const {
  tokens.clear();
  if (byte_level) return bytes_to_tokens(piece, tokens);
  while (!piece.empty()) {
    const auto byte = static_cast<std::uint8_t>(piece[0]);
    std::size_t length = 1;
    if (byte < ascii_tokens.size()) {
      tokens.push_back(ascii_tokens[byte]);
    } else {
      length = static_cast<std::size_t>(first_character(piece).length);
      character_to_tokens(piece.substr(0, length), tokens);
    }
    piece.remove_prefix(length);
  }
}

void TokenizerTables::bytes_to_tokens(std::string_view bytes, std::vector<TokenId>& tokens) const {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const TokenId id = byte_tokens[static_cast<std::uint8_t>(bytes[i])];
    if (id >= 0)
      tokens.push_back(id);
    else if (unknown >= 0 && !(fuse_unknown && i > 0 && lacks(bytes[i - 1])))
      tokens.push_back(unknown);
  }
}

void TokenizerTables::character_to_tokens(std::string_view character, std::vector<TokenId>& tokens) const {
  if (const TokenId whole = vocabulary.find(character); whole >= 0) return tokens.push_back(whole);
  for (const char byte : character) tokens.push_back(byte_tokens[static_cast<std::uint8_t>(byte)]);
}

}  // namespace carnot
