// text/word_piece.h -- BERT's tokenizer: words and punctuation, cut into the longest pieces that the vocabulary has.
//
// As Hugging Face's BertNormalizer, BertPreTokenizer and WordPiece do it: control characters go, CJK ideographs become
// separate words, text is put into lower case and loses its accents (NFD without nonspacing marks); words end at
// white space and at each punctuation character; a word begins with a piece of the vocabulary and continues with pieces
// that begin with "##", the longest first; a word that cannot be cut so, or has more than 100 characters, is [UNK].
// Unlike there, "[SEP]" in a text is text and not the token of that name.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/tokens.h"

namespace carnot {

struct WordPieceOptions {
  bool lower_case = true;  ///< and without accents
};

/// The words of a text before they are cut.
std::vector<std::string> bert_words(std::string_view text, const WordPieceOptions& options = {});

class WordPieceTokenizer {
 public:
  /// A vocab.txt: a piece a line, its number the id. The error names what is missing of [UNK], [CLS] and [SEP], or a
  /// piece that occurs twice.
  static Result<WordPieceTokenizer> parse(std::string_view vocabulary, const std::string& name,
                                          const WordPieceOptions& options = {});
  static Result<WordPieceTokenizer> load(const std::filesystem::path& vocab_file, const WordPieceOptions& options = {});

  /// [CLS], the pieces, [SEP]; at most `longest` ids in all, the pieces cut at their end. REQUIRES: longest >= 2.
  std::vector<TokenId> encode(std::string_view text, std::size_t longest) const;

  std::size_t size() const { return ids_.size(); }

 private:
  WordPieceTokenizer() = default;
  void add_pieces(std::string_view word, std::vector<TokenId>& ids) const;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_{};
  WordPieceOptions options_{};
  TokenId unknown_ = 0, begin_ = 0, end_ = 0;
};

}  // namespace carnot
