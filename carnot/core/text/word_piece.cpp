#include "carnot/core/text/word_piece.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr std::size_t kLongestWord = 100;  // characters; as Hugging Face's max_input_chars_per_word
constexpr std::string_view kContinues = "##";

bool is_ideograph(char32_t c) {
  // First and last of each range.
  constexpr char32_t kRanges[] = {0x4E00,  0x9FFF,  0x3400,  0x4DBF,  0x20000, 0x2A6DF, 0x2A700, 0x2B73F,
                                  0x2B740, 0x2B81F, 0x2B920, 0x2CEAF, 0xF900,  0xFAFF,  0x2F800, 0x2FA1F};
  for (std::size_t i = 0; i < std::size(kRanges); i += 2)
    if (c >= kRanges[i] && c <= kRanges[i + 1]) return true;
  return false;
}

bool is_other(char32_t c) {  // categories that begin with C
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CN ||
         category == UTF8PROC_CATEGORY_CO || category == UTF8PROC_CATEGORY_CS;
}

bool is_punctuation(char32_t c) {
  if ((c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126)) return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

std::u32string characters_of(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) {
    const Utf8Character one = first_character(text);
    characters += one.valid ? one.code_point : U'\uFFFD';
    text.remove_prefix(static_cast<std::size_t>(one.length));
  }
  return characters;
}

std::u32string cleaned(const std::u32string& text) {
  std::u32string clean;
  for (const char32_t c : text) {
    if (c == '\t' || c == '\n' || c == '\r')
      clean += U' ';
    else if (c == 0xFFFD || c == 0 || is_other(c))
      continue;
    else if (is_white_space(c))
      clean += U' ';
    else if (is_ideograph(c))
      (clean += U' ').append({c, U' '});
    else
      clean += c;
  }
  return clean;
}

/// NFD without nonspacing marks, then lower case.
std::u32string folded(const std::u32string& text) {
  std::u32string plain;
  for (const char32_t c : text) {
    std::array<utf8proc_int32_t, 32> parts{};
    int boundary = 0;
    const auto count =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, &boundary);
    CARNOT_CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()), "a character's decomposition");
    for (utf8proc_ssize_t i = 0; i < count; ++i)
      if (utf8proc_category(parts[static_cast<std::size_t>(i)]) != UTF8PROC_CATEGORY_MN)
        plain += static_cast<char32_t>(utf8proc_tolower(parts[static_cast<std::size_t>(i)]));
  }
  return plain;
}

}  // namespace

std::vector<std::string> bert_words(std::string_view text, const WordPieceOptions& options) {
  std::u32string characters = cleaned(characters_of(text));
  if (options.lower_case) characters = folded(characters);
  std::vector<std::string> words;
  bool inside = false;
  for (const char32_t c : characters) {
    const bool alone = is_punctuation(c), blank = is_white_space(c);
    if (!blank && (alone || !inside)) words.emplace_back();
    if (!blank) append_utf8(words.back(), c);
    inside = !blank && !alone;
  }
  return words;
}

Result<WordPieceTokenizer> WordPieceTokenizer::parse(std::string_view vocabulary, const std::string& name,
                                                     const WordPieceOptions& options) {
  WordPieceTokenizer tokenizer;
  tokenizer.options_ = options;
  std::vector<std::string> problems;
  for (std::string_view line : split_lines(vocabulary)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const auto id = static_cast<TokenId>(tokenizer.ids_.size());
    if (!tokenizer.ids_.emplace(line, id).second && problems.size() < kMaxProblems)
      problems.push_back(name + ":" + std::to_string(id + 1) + ": \"" + std::string(line) + "\" occurs twice");
  }
  const auto need = [&](std::string_view piece, TokenId& id) {
    const auto found = tokenizer.ids_.find(piece);
    if (found == tokenizer.ids_.end())
      problems.push_back(name + ": has no " + std::string(piece));
    else
      id = found->second;
  };
  need("[UNK]", tokenizer.unknown_);
  need("[CLS]", tokenizer.begin_);
  need("[SEP]", tokenizer.end_);
  if (!problems.empty()) return join_errors(problems);
  return tokenizer;
}

Result<WordPieceTokenizer> WordPieceTokenizer::load(const std::filesystem::path& vocab_file,
                                                    const WordPieceOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(vocab_file));
  return parse(text, vocab_file.string(), options);
}

void WordPieceTokenizer::add_pieces(std::string_view word, std::vector<TokenId>& ids) const {
  if (count_characters(word) > kLongestWord) return ids.push_back(unknown_);
  const std::size_t before = ids.size();
  std::string piece;
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = word.size();
    for (; end > begin; end = begin + last_character_begin(word.substr(begin, end - begin))) {
      piece = (begin > 0 ? std::string(kContinues) : std::string()) + std::string(word.substr(begin, end - begin));
      if (const auto found = ids_.find(piece); found != ids_.end()) {
        ids.push_back(found->second);
        break;
      }
    }
    if (end == begin) {
      ids.resize(before);
      return ids.push_back(unknown_);
    }
    begin = end;
  }
}

std::vector<TokenId> WordPieceTokenizer::encode(std::string_view text, std::size_t longest) const {
  CARNOT_CHECK_GE(longest, 2u);
  std::vector<TokenId> ids{begin_};
  for (const std::string& word : bert_words(text, options_)) {
    if (ids.size() >= longest) break;
    add_pieces(word, ids);
  }
  ids.resize(std::min(ids.size(), longest - 1));
  ids.push_back(end_);
  return ids;
}

}  // namespace carnot
