#include "carnot/core/text/tokenizer.h"

#include <algorithm>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/tokenizer_file.h"
#include "carnot/core/text/tokenizer_tables.h"

namespace carnot {
namespace {

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
void for_each_part(const TokenizerTables& tables, std::string_view text, std::span<const TextRange> contents,
                   OnToken&& on_token, OnText&& on_text, OnByte&& on_byte) {
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
  Encoding(const TokenizerTables& tables, TextBefore before) : tables_(tables), before_(before) {}

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
    tables_.merge_table.merge(tokens_, merge_scratch_);
    ids_.insert(ids_.end(), tokens_.begin(), tokens_.end());
  }

  const TokenizerTables& tables_;
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
  TokenizerTables tables;
};

std::span<const TokenId> Tokenizer::text_begin() const { return state_->tables.text_begin; }

Result<std::vector<TokenId>> Tokenizer::try_encode_from_begin(std::string_view text) const {
  CARNOT_ASSIGN_OR_RETURN(auto tokens, try_encode(text));
  const auto begin = text_begin();
  const bool begins = tokens.size() >= begin.size() && std::equal(begin.begin(), begin.end(), tokens.begin());
  if (!begins) tokens.insert(tokens.begin(), begin.begin(), begin.end());
  return tokens;
}

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(path));
    return parse(text, path.string());
  }
  const auto file = path / "tokenizer.json";
  if (std::filesystem::exists(file, ignored)) return load(file);
  CARNOT_ASSIGN_OR_RETURN(const auto text, tokenizer_json_of_folder(path));
  return parse(text, path.string());
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(auto file, read_tokenizer_json(json, name));
  if (const std::string lacking = lacking_bytes(file); !lacking.empty())
    log_warning(name + ": model.vocab lacks the symbols of the bytes " + lacking + "; in a text they become " +
                (file.unknown < 0 ? "nothing" : "the unknown token") + ", as with transformers");
  return Tokenizer(
      std::make_unique<State>(State{.json = std::string(json), .tables = TokenizerTables(std::move(file))}));
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
  const TokenizerTables& tables = state_->tables;
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

TextRange Tokenizer::place_of(TokenId id, std::string_view text, std::size_t offset) const {
  const TokenizerTables& tables = state_->tables;
  const std::string_view bytes = bytes_of(id);
  const auto spells = [&](std::size_t at) { return text.substr(at).starts_with(bytes); };
  const auto is_lost = [&](std::size_t at) { return at < text.size() && tables.lacks(text[at]); };
  const auto replaces = [&](std::size_t at) { return id == tables.unknown && is_lost(at); };
  std::size_t at = offset;
  // Over bytes that became nothing, and blanks that an added token took.
  while (at < text.size() && !spells(at) && !replaces(at)) {
    const Utf8Character next = first_character(text.substr(at));
    const bool is_taken = is_white_space(next.code_point) && !bytes.starts_with(' ');
    if (!is_lost(at) && !is_taken) break;
    at += is_lost(at) ? 1 : static_cast<std::size_t>(next.length);
  }
  TextRange place{.begin = at, .end = at};
  if (spells(at)) {
    place.end += bytes.size();
  } else if (replaces(at)) {
    do ++place.end;
    while (tables.fuse_unknown && is_lost(place.end));
  } else {
    for (const char byte : bytes) {
      while (is_lost(place.end) && text[place.end] != byte) ++place.end;
      if (place.end < text.size() && text[place.end] == byte) ++place.end;
    }
  }
  return place;
}

bool Tokenizer::has(TokenId id) const { return state_->tables.vocabulary.contains(id); }

bool Tokenizer::is_added(TokenId id) const { return id >= 0 && id < vocab_size() && state_->tables.is_added[id]; }

bool Tokenizer::is_control(TokenId id) const { return id >= 0 && id < vocab_size() && state_->tables.is_control[id]; }

int Tokenizer::vocab_size() const { return state_->tables.vocabulary.size(); }

const std::string& Tokenizer::json() const { return state_->json; }

std::string StreamingDecoder::push(TokenId id) {
  waiting_ += tokenizer_->bytes_of(id);
  const std::size_t complete = waiting_.size() - unfinished_suffix(waiting_);
  std::string text = waiting_.substr(0, complete);
  waiting_.erase(0, complete);
  return text;
}

std::string StreamingDecoder::flush() { return std::exchange(waiting_, {}); }

}  // namespace carnot
