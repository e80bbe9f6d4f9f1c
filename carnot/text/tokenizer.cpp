#include "carnot/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "carnot/base/check.h"
#include "carnot/base/file.h"
#include "carnot/base/utf8.h"
#include "carnot/text/byte_alphabet.h"
#include "carnot/text/tokenizer_file.h"
#include "carnot/text/tokenizer_folder.h"

namespace carnot {

namespace {

/// Everything encode() reads; never written after construction.
struct Tables {
  explicit Tables(TokenizerFile file);

  /// What a piece is before it is merged.
  void piece_to_tokens(std::string_view piece, std::vector<TokenId>& tokens) const;
  void character_to_tokens(std::string_view character, std::vector<TokenId>& tokens) const;

  Vocabulary vocabulary;
  std::array<TokenId, 256> byte_tokens;
  std::array<TokenId, 128> ascii_tokens;  // of characters: their own, or else their byte's
  MergeTable merges;
  bool compose;
  bool byte_level;
  BlankBefore blank_before;
  bool normalizer_marks_blanks;
  bool strip_first_blank;
  bool words_merge_apart;  // no merge goes over the border before a blank
  std::vector<SplitStep> steps;
  AddedTokenFinder raw_added;         // looked for in the text as it is
  AddedTokenFinder normalized_added;  // looked for after normalisation
  std::unordered_map<std::string, TokenId> added_ids;
  std::unordered_map<TokenId, std::string> decoded_otherwise;  // added tokens that are not decoded to their bytes
  std::vector<bool> is_added;                                  // by id
  std::vector<bool> is_control;                                // by id
  std::vector<bool> in_byte_runs;                              // by id: decoded with the bytes beside it
  std::vector<bool> is_whole;  // by id: a piece of exactly these bytes becomes this one token
};

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
std::vector<bool> find_whole_tokens(const Tables& tables, bool ignore_merges) {
  const Vocabulary& vocabulary = tables.vocabulary;
  std::vector<bool> whole(vocabulary.size(), ignore_merges);
  if (ignore_merges) return whole;
  std::vector<TokenId> tokens;
  MergeTable::Scratch scratch;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.contains(id)) continue;
    tables.piece_to_tokens(vocabulary.bytes(id), tokens);
    tables.merges.merge(tokens, scratch);
    whole[id] = tokens == std::vector<TokenId>{id};
  }
  return whole;
}

/// True where no merge joins what ends in a word to what begins with a blank: then each word may be merged by itself,
/// with the blanks before it.
bool merges_keep_words_apart(const Vocabulary& vocabulary, const std::vector<Merge>& merges) {
  return std::all_of(merges.begin(), merges.end(), [&](const Merge& merge) {
    return !vocabulary.bytes(merge.right).starts_with(' ') || vocabulary.bytes(merge.left).ends_with(' ');
  });
}

Tables::Tables(TokenizerFile file)
    : vocabulary(std::move(file.vocabulary)),
      byte_tokens(file.byte_tokens),
      ascii_tokens(find_ascii_tokens(vocabulary, byte_tokens)),
      merges(file.merges),
      compose(file.compose),
      byte_level(file.byte_level),
      blank_before(file.blank_before),
      normalizer_marks_blanks(file.normalizer_marks_blanks),
      strip_first_blank(file.strip_first_blank),
      words_merge_apart(!file.byte_level && merges_keep_words_apart(vocabulary, file.merges)),
      steps(std::move(file.steps)),
      raw_added(added_tokens_with(file, false)),
      normalized_added(added_tokens_with(file, true), file.normalizer_marks_blanks ? Blank::Mark : Blank::WhiteSpace),
      is_added(vocabulary.size()),
      is_control(vocabulary.size()),
      in_byte_runs(vocabulary.size()) {
  for (const AddedToken& token : file.added) {
    added_ids[token.content] = token.id;
    is_added[token.id] = true;
    is_control[token.id] = token.special;
    std::string decoded = decoded_content(token, file);
    if (decoded != vocabulary.bytes(token.id)) decoded_otherwise[token.id] = std::move(decoded);
  }
  for (const TokenId id : byte_tokens) in_byte_runs[id] = !byte_level;
  is_whole = find_whole_tokens(*this, file.ignore_merges);
  for (std::size_t id = 0; id < is_whole.size(); ++id) is_whole[id] = is_whole[id] && !is_control[id];
}

void Tables::piece_to_tokens(std::string_view piece, std::vector<TokenId>& tokens) const {
  tokens.clear();
  while (!piece.empty()) {
    const auto byte = static_cast<std::uint8_t>(piece[0]);
    std::size_t length = 1;
    if (byte_level) {
      tokens.push_back(byte_tokens[byte]);
    } else if (byte < ascii_tokens.size()) {
      tokens.push_back(ascii_tokens[byte]);
    } else {
      length = static_cast<std::size_t>(first_character(piece).length);
      character_to_tokens(piece.substr(0, length), tokens);
    }
    piece.remove_prefix(length);
  }
}

void Tables::character_to_tokens(std::string_view character, std::vector<TokenId>& tokens) const {
  if (const TokenId whole = vocabulary.find(character); whole >= 0) return tokens.push_back(whole);
  for (const char byte : character) tokens.push_back(byte_tokens[static_cast<std::uint8_t>(byte)]);
}

/// Hugging Face's ByteFallback: a run of byte tokens is text as a whole, or each byte of it is replaced.
std::string decoded_run(const std::string& bytes) {
  if (valid_prefix(bytes) == bytes.size()) return bytes;
  std::string replaced;
  for (std::size_t i = 0; i < bytes.size(); ++i) replaced += "\uFFFD";
  return replaced;
}

/// The parts of `text` in order: on_token(id) for raw added tokens, on_text(valid text, the same normalised) for what
/// is valid between them, on_byte(one byte) for what is not UTF-8. Control tokens in `contents` are text.
template <class OnToken, class OnText, class OnByte>
void for_each_part(const Tables& tables, std::string_view text, std::span<const TextRange> contents, OnToken&& on_token,
                   OnText&& on_text, OnByte&& on_byte) {
  const auto on_stretch = [&](std::string_view stretch) {
    while (!stretch.empty()) {
      const std::string_view valid = stretch.substr(0, valid_prefix(stretch));
      if (!valid.empty() && (!tables.compose || certainly_composed(valid))) {
        on_text(valid, valid);
      } else if (!valid.empty()) {
        on_text(valid, std::string_view(compose(valid)));
      }
      stretch.remove_prefix(valid.size());
      if (stretch.empty()) break;
      on_byte(stretch.substr(0, 1));
      stretch.remove_prefix(1);
    }
  };
  tables.raw_added.split(text, contents, on_stretch, on_token);
}

/// One call of Tokenizer::encode.
class Encoding {
 public:
  Encoding(const Tables& tables, TextBefore before) : tables_(tables), before_(before) {}

  Result<std::vector<TokenId>> run(std::string_view text, std::span<const TextRange> contents) && {
    ids_.reserve(text.size() / 3 + 8);
    const auto on_token = [&](TokenId id) { push(id); };
    for_each_part(
        tables_, text, contents, on_token,
        [&](std::string_view valid, std::string_view normalized) {
          const std::string marked = tables_.normalizer_marks_blanks ? section(normalized) : std::string();
          const std::string_view searched = tables_.normalizer_marks_blanks ? marked : normalized;
          const auto offset = static_cast<std::size_t>(valid.data() - text.data());
          tables_.normalized_added.split(
              searched, searched_contents(valid, offset, contents, searched.size()),
              [&](std::string_view stretch) { encode_stretch(stretch); }, on_token);
        },
        [&](std::string_view byte) { merge_piece(byte); });
    if (!status_) return status_.error();
    return std::move(ids_);
  }

 private:
  /// Where the contents that reach into `valid`, which begins at `offset`, lie in what is searched after normalisation.
  std::vector<TextRange> searched_contents(std::string_view valid, std::size_t offset,
                                           std::span<const TextRange> contents, std::size_t searched_size) const {
    std::vector<TextRange> ranges;
    if (!tables_.normalized_added.has_special()) return ranges;
    const auto place = [&](std::size_t at) {  // counted from the end: what may be put before the text does not matter
      if (at <= offset) return std::size_t{0};
      const std::string_view following = valid.substr(std::min(at - offset, valid.size()));
      const std::string composed = tables_.compose ? compose(following) : std::string(following);
      return searched_size - (tables_.normalizer_marks_blanks ? with_blanks(composed) : composed).size();
    };
    for (const TextRange& range : contents)
      if (range.end > offset && range.begin < offset + valid.size())
        ranges.push_back({.begin = place(range.begin), .end = place(range.end)});
    return ranges;
  }

  void push(TokenId id) { ids_.push_back(id); }
  bool at_start() const { return ids_.empty(); }

  void encode_stretch(std::string_view stretch) {
    if (tables_.byte_level) return split(stretch, 0);
    if (tables_.normalizer_marks_blanks) return split_words(stretch);
    const std::string blanks = with_blanks(stretch);
    split_words(wants_blank(blanks) ? " " + blanks : blanks);
  }

  /// A section between raw added tokens as a SentencePiece file's normaliser leaves it.
  std::string section(std::string_view normalized) const {
    const bool continues = at_start() && before_ == TextBefore::Text;
    const bool blank = tables_.blank_before == BlankBefore::Sections && !continues;
    return (blank ? " " : "") + with_blanks(normalized);
  }

  bool wants_blank(std::string_view stretch) const {
    if (stretch.starts_with(' ')) return false;
    if (tables_.blank_before == BlankBefore::Stretches) return !at_start() || before_ != TextBefore::Text;
    return tables_.blank_before == BlankBefore::Text && at_start() && before_ == TextBefore::Nothing;
  }

  /// Each word with the blanks before it is a piece, where merges allow that.
  void split_words(std::string_view text) {
    while (tables_.words_merge_apart && !text.empty()) {
      const std::size_t word = std::min(text.find_first_not_of(' '), text.size());
      const std::size_t end = std::min(text.find(' ', word), text.size());
      merge_piece(text.substr(0, end));
      text.remove_prefix(end);
    }
    if (!text.empty()) merge_piece(text);
  }

  /// The steps from step_index on.
  void split(std::string_view piece, std::size_t step_index) {
    if (!status_) return;  // an error already: no need to see how much longer it takes
    if (step_index == tables_.steps.size()) return merge_piece(piece);
    const SplitStep& step = tables_.steps[step_index];
    if (step.add_prefix_space && !piece.starts_with(' ')) return split_with_prefix(piece, step_index);
    if (!step.pattern) return split(piece, step_index + 1);
    const Status status =
        step.pattern->for_each_piece(piece, scratch_, [&](std::string_view part) { split(part, step_index + 1); });
    if (!status) status_ = status;
  }

  void split_with_prefix(std::string_view piece, std::size_t step_index) {
    const std::string prefixed = " " + std::string(piece);
    split(prefixed, step_index);
  }

  void merge_piece(std::string_view piece) {
    const TokenId whole = tables_.vocabulary.find(piece);
    if (whole >= 0 && tables_.is_whole[whole]) return push(whole);
    tables_.piece_to_tokens(piece, tokens_);
    tables_.merges.merge(tokens_, merge_scratch_);
    ids_.insert(ids_.end(), tokens_.begin(), tokens_.end());
  }

  const Tables& tables_;
  const TextBefore before_;
  SplitScratch scratch_;
  MergeTable::Scratch merge_scratch_;
  std::vector<TokenId> tokens_;
  std::vector<TokenId> ids_;
  Status status_ = Done{};
};

}  // namespace

struct Tokenizer::State {
  std::string json;
  Tables tables;
};

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    const auto text = read_maybe_compressed(path);
    if (!text) return text.error();
    return parse(*text, path.string());
  }
  const auto file = path / "tokenizer.json";
  if (std::filesystem::exists(file, ignored)) return load(file);
  const auto text = tokenizer_json_of_folder(path);
  if (!text) return text.error();
  return parse(*text, path.string());
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& name) {
  auto file = read_tokenizer_json(json, name);
  if (!file) return file.error();
  return Tokenizer(std::make_unique<State>(State{.json = std::string(json), .tables = Tables(std::move(*file))}));
}

Result<std::vector<TokenId>> Tokenizer::try_encode(std::string_view text, TextBefore before,
                                                   std::span<const TextRange> contents) const {
  return Encoding(state_->tables, before).run(text, contents);
}

Result<std::vector<TokenId>> Tokenizer::try_encode_content(std::string_view text, TextBefore before) const {
  const TextRange all{.end = text.size()};
  return try_encode(text, before, {&all, 1});
}

bool Tokenizer::puts_blanks() const { return state_->tables.blank_before != BlankBefore::Nothing; }

std::string Tokenizer::decode_whole(std::span<const TokenId> ids) const {
  const Tables& tables = state_->tables;
  std::string text, run;
  for (const TokenId id : ids) {
    if (has(id) && tables.in_byte_runs[id]) {
      run += bytes_of(id);
      continue;
    }
    text += decoded_run(run);
    run.clear();
    const auto otherwise = tables.decoded_otherwise.find(id);
    text += otherwise != tables.decoded_otherwise.end() ? std::string_view(otherwise->second) : bytes_of(id);
  }
  text += decoded_run(run);
  if (tables.strip_first_blank && text.starts_with(' ')) text.erase(0, 1);
  return with_replacement_characters(text);
}

std::string Tokenizer::normalize(std::string_view text, ControlTokens control) const {
  std::string normalized;
  const TextRange all{.end = control == ControlTokens::Text ? text.size() : 0};
  for_each_part(
      state_->tables, text, {&all, 1}, [&](TokenId id) { normalized += bytes_of(id); },
      [&](std::string_view, std::string_view composed) { normalized += composed; },
      [&](std::string_view byte) { normalized += byte; });
  return normalized;
}

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  for (const TokenId id : ids) text += bytes_of(id);
  return text;
}

std::string_view Tokenizer::bytes_of(TokenId id) const {
  CARNOT_CHECK(state_->tables.vocabulary.contains(id), "no token has the id " + std::to_string(id));
  return state_->tables.vocabulary.bytes(id);
}

std::optional<TokenId> Tokenizer::id_of(std::string_view text) const {
  if (const auto added = state_->tables.added_ids.find(std::string(text)); added != state_->tables.added_ids.end())
    return added->second;
  const TokenId id = state_->tables.vocabulary.find(text);
  return id >= 0 ? std::optional(id) : std::nullopt;
}

bool Tokenizer::has(TokenId id) const { return state_->tables.vocabulary.contains(id); }

bool Tokenizer::is_added(TokenId id) const { return id >= 0 && id < vocab_size() && state_->tables.is_added[id]; }

bool Tokenizer::is_control(TokenId id) const { return id >= 0 && id < vocab_size() && state_->tables.is_control[id]; }

int Tokenizer::vocab_size() const { return state_->tables.vocabulary.size(); }

const std::string& Tokenizer::json() const { return state_->json; }

}  // namespace carnot
