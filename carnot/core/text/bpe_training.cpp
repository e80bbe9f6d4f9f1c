#include "carnot/core/text/bpe_training.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "carnot/core/base/json.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/data/tokens.h"
#include "carnot/core/text/added_tokens.h"
#include "carnot/core/text/byte_alphabet.h"
#include "carnot/core/text/qwen2_json.h"
#include "carnot/core/text/split_pattern.h"

namespace carnot {
namespace {

struct TokenPair {
  TokenId left = 0;
  TokenId right = 0;

  auto operator<=>(const TokenPair&) const = default;
};

/// The loop of byte-pair training: words with their counts, and the counts of all pairs of neighbours in them, kept up
/// to date.
class PairMerger {
 public:
  void add_word(std::vector<TokenId> tokens, std::int64_t count) {
    words_.push_back({.tokens = std::move(tokens), .count = count});
    count_pairs(words_.size() - 1, 1);
  }

  /// The most frequent pair, of equals the smaller one; nothing if none occurs `at_least` times.
  std::optional<TokenPair> most_frequent(std::int64_t at_least) {
    while (!queue_.empty()) {
      const Candidate candidate = queue_.top();
      const auto found = pairs_.find(key(candidate.pair));
      const std::int64_t count = found == pairs_.end() ? 0 : found->second.count;
      if (count >= at_least && count == candidate.count) return candidate.pair;
      queue_.pop();
      if (count >= at_least && count < candidate.count) queue_.push({.count = count, .pair = candidate.pair});
    }
    return {};
  }

  /// Replaces the pair by `result` in all words, from left to right.
  void merge(TokenPair pair, TokenId result) {
    // A fixed order: the counts do not depend on it, the queue's memory does.
    const auto& occurring = pairs_[key(pair)].words;
    std::vector<std::size_t> words(occurring.begin(), occurring.end());
    std::sort(words.begin(), words.end());
    for (const std::size_t word : words) {
      count_pairs(word, -1);
      auto& tokens = words_[word].tokens;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < tokens.size(); ++kept) {
        const bool merges = i + 1 < tokens.size() && TokenPair{tokens[i], tokens[i + 1]} == pair;
        tokens[kept] = merges ? result : tokens[i];
        i += merges ? 2 : 1;
      }
      tokens.resize(kept);
      count_pairs(word, 1);
    }
  }

  /// The pair shall not be answered by most_frequent() any more.
  void forget(TokenPair pair) { pairs_.erase(key(pair)); }

 private:
  struct Word {
    std::vector<TokenId> tokens{};
    std::int64_t count = 0;
  };
  struct Occurrences {
    std::int64_t count = 0;
    std::unordered_set<std::size_t> words{};  // may hold words that lost the pair since
  };
  struct Candidate {
    std::int64_t count = 0;
    TokenPair pair{};

    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  static std::uint64_t key(TokenPair pair) {
    return static_cast<std::uint64_t>(pair.left) << 32 | static_cast<std::uint32_t>(pair.right);
  }
  /// Counts the pairs of the word `sign` times its count.
  void count_pairs(std::size_t word, int sign) {
    const auto& [tokens, count] = words_[word];
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const TokenPair pair{tokens[i], tokens[i + 1]};
      Occurrences& occurrences = pairs_[key(pair)];
      occurrences.count += sign * count;
      if (sign < 0) continue;
      occurrences.words.insert(word);
      queue_.push({.count = occurrences.count, .pair = pair});
    }
  }

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Occurrences> pairs_;
  std::priority_queue<Candidate> queue_;  // counts as they were; checked when taken out
};

constexpr std::int64_t kLeastCount = 2;

/// The pattern takes each digit by itself, never with a blank.
bool is_one_digit(std::string_view word) { return word.size() == 1 && word[0] >= '0' && word[0] <= '9'; }

/// The protected words as they occur in text: bare, then with a blank.
std::vector<std::string> protected_pieces(const BpeTrainingOptions& options) {
  std::vector<std::string> pieces;
  std::set<std::string> seen;
  for (const std::string& word : options.protected_words)
    for (const std::string& piece : {word, " " + word})
      if ((piece == word || !is_one_digit(word)) && seen.insert(piece).second) pieces.push_back(piece);
  return pieces;
}

/// Splits texts as the tokenizer will.
class PieceCounter {
 public:
  explicit PieceCounter(const BpeTrainingOptions& options) : added_(as_added(options.added_tokens)) {}

  void count(std::string_view text) {
    added_.split(text, {}, [&](std::string_view stretch) { count_stretch(stretch); }, [](TokenId) {});
  }

  bool is_one_piece(std::string_view text) {
    if (valid_prefix(text) != text.size() || compose(text) != text) return false;
    int pieces = 0;
    return pattern_.for_each_piece(text, scratch_, [&](std::string_view) { ++pieces; }).ok() && pieces == 1;
  }

  /// In the order of their bytes.
  std::map<std::string, std::int64_t> take() && { return std::move(counts_); }

 private:
  static std::vector<AddedToken> as_added(const std::vector<std::string>& contents) {
    std::vector<AddedToken> tokens;
    for (const std::string& content : contents) tokens.push_back({.content = content});
    return tokens;
  }

  void count_stretch(std::string_view stretch) {
    while (!stretch.empty()) {
      const std::size_t valid = valid_prefix(stretch);
      const std::string composed = compose(stretch.substr(0, valid));
      pattern_.for_each_piece(composed, scratch_, [&](std::string_view piece) { ++counts_[std::string(piece)]; })
          .value();
      stretch.remove_prefix(std::min(stretch.size(), valid + 1));
    }
  }

  AddedTokenFinder added_;
  SplitPattern pattern_ = SplitPattern::compile(kQwen2Pattern).value();
  SplitScratch scratch_;
  std::map<std::string, std::int64_t> counts_;
};

std::vector<std::string> problems_of(const BpeTrainingOptions& options) {
  std::vector<std::string> problems;
  std::set<std::string> contents;
  for (const std::string& token : options.added_tokens) {
    const std::string what = "added token '" + token + "': ";
    if (token.empty() || valid_prefix(token) != token.size()) problems.push_back(what + "expected some UTF-8 text");
    if (!contents.insert(token).second) problems.push_back(what + "is listed twice");
    const auto bytes = symbols_to_bytes(token);
    if (bytes && bytes->size() == 1) problems.push_back(what + "is the symbol of a single byte");
  }
  if (!problems.empty()) return problems;

  PieceCounter counter(options);
  const auto pieces = protected_pieces(options);
  for (const std::string& piece : pieces) {
    if (contents.contains(bytes_to_symbols(piece)))
      problems.push_back("tokenizer_words: '" + piece + "': is an added token");
    const bool is_named = piece.starts_with(' ') && !counter.is_one_piece(piece.substr(1));  // without the blank
    if (!is_named && !counter.is_one_piece(piece))
      problems.push_back("tokenizer_words: '" + piece +
                         "': the pattern splits it; expected letters only, or one digit");
  }
  const std::size_t least = options.added_tokens.size() + 256 + pieces.size();
  if (options.vocab_size < static_cast<int>(least))
    problems.push_back("vocab_size: expected at least " + std::to_string(least) +
                       " (added tokens, bytes, protected words), got " + std::to_string(options.vocab_size));
  return problems;
}

/// The vocabulary as it grows, by the symbols that tokenizer.json writes.
class GrowingVocabulary {
 public:
  explicit GrowingVocabulary(const BpeTrainingOptions& options) {
    for (const std::string& token : options.added_tokens) add(token);
    first_byte_ = size();
    for (int byte = 0; byte < 256; ++byte) add(bytes_to_symbols(std::string(1, static_cast<char>(byte))));
    for (const std::string& piece : protected_pieces(options)) add(bytes_to_symbols(piece));
  }

  TokenId add(const std::string& symbols) {
    const auto [entry, is_new] = ids_.emplace(symbols, size());
    if (is_new) symbols_.push_back(symbols);
    return entry->second;
  }

  TokenId size() const { return static_cast<TokenId>(symbols_.size()); }
  const std::string& symbols(TokenId id) const { return symbols_[id]; }
  bool contains(const std::string& symbols) const { return ids_.contains(symbols); }
  bool is_added(const std::string& symbols) const {
    const auto entry = ids_.find(symbols);
    return entry != ids_.end() && entry->second < first_byte_;
  }

  std::vector<TokenId> tokens_of(std::string_view bytes) const {
    std::vector<TokenId> tokens;
    for (const char byte : bytes) tokens.push_back(first_byte_ + static_cast<std::uint8_t>(byte));
    return tokens;
  }

 private:
  std::unordered_map<std::string, TokenId> ids_;
  std::vector<std::string> symbols_;
  TokenId first_byte_ = 0;
};

/// Grows the vocabulary to vocab_size and returns the merges, "a b" each.
std::vector<std::string> train_merges(std::span<const std::string> texts, const BpeTrainingOptions& options,
                                      GrowingVocabulary& vocabulary) {
  PieceCounter counter(options);
  for (const std::string& text : texts) counter.count(text);
  PairMerger merger;
  for (const auto& [piece, count] : std::move(counter).take())
    if (!vocabulary.contains(bytes_to_symbols(piece))) merger.add_word(vocabulary.tokens_of(piece), count);

  std::vector<std::string> merges;
  std::set<TokenPair> merged;
  while (vocabulary.size() < options.vocab_size) {
    const auto pair = merger.most_frequent(kLeastCount);
    if (!pair) break;
    const std::string& left = vocabulary.symbols(pair->left);
    const std::string& right = vocabulary.symbols(pair->right);
    if (vocabulary.is_added(left + right)) {
      merger.forget(*pair);
      continue;
    }
    // A pair comes back where a later merge makes one of its parts again; its first rank serves both.
    if (merged.insert(*pair).second) merges.push_back(left + " " + right);
    merger.merge(*pair, vocabulary.add(left + right));
  }
  return merges;
}

OrderedJson added_token_json(TokenId id, const std::string& content) {
  return {{"id", id},
          {"content", content},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", false},
          {"normalized", false},
          {"special", content.starts_with("<|") && content.ends_with("|>")}};
}

OrderedJson added_json(const std::vector<std::string>& contents) {
  OrderedJson added = OrderedJson::array();
  for (std::size_t id = 0; id < contents.size(); ++id)
    added.push_back(added_token_json(static_cast<TokenId>(id), contents[id]));
  return added;
}

OrderedJson vocab_json(const GrowingVocabulary& vocabulary) {
  OrderedJson vocab = OrderedJson::object();
  auto& entries = vocab.get_ref<OrderedJson::object_t&>();
  for (TokenId id = 0; id < vocabulary.size(); ++id) entries.push_back({vocabulary.symbols(id), id});
  return vocab;
}

}  // namespace

Result<std::string> train_byte_level_bpe(std::span<const std::string> texts, const BpeTrainingOptions& options) {
  if (const auto problems = problems_of(options); !problems.empty()) return join_errors(problems);
  GrowingVocabulary vocabulary(options);
  const auto merges = train_merges(texts, options, vocabulary);
  // A protected word need not come about by merges: with ignore_merges a piece in the vocabulary is one token.
  return qwen2_tokenizer_json<OrderedJson>(kQwen2Pattern, added_json(options.added_tokens), vocab_json(vocabulary),
                                           merges, true)
      .dump(2);
}

}  // namespace carnot
