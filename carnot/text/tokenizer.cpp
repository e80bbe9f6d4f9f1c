#include "carnot/text/tokenizer.h"

#include <array>
#include <unordered_map>

#include "carnot/base/check.h"
#include "carnot/base/file.h"
#include "carnot/text/tokenizer_file.h"
#include "carnot/text/utf8.h"

namespace carnot {

namespace {

/// Everything encode() reads; never written after construction.
struct Tables {
  explicit Tables(TokenizerFile file);

  Vocabulary vocabulary;
  MergeTable merges;
  bool compose;
  std::vector<SplitStep> steps;
  AddedTokenFinder raw_added;         // looked for in the text as it is
  AddedTokenFinder normalized_added;  // looked for after normalisation
  std::unordered_map<std::string, TokenId> added_ids;
  std::vector<bool> is_added;  // by id
  std::vector<bool> is_whole;  // by id: a piece of exactly these bytes becomes this one token
  std::array<TokenId, 256> byte_tokens{};
};

/// The added tokens with this `normalized` flag, their contents as they stand in the text that is searched.
std::vector<AddedToken> added_tokens_with(const TokenizerFile& file, bool normalized) {
  std::vector<AddedToken> chosen;
  for (AddedToken token : file.added) {
    if (token.normalized != normalized) continue;
    if (normalized && file.compose) token.content = compose(token.content);
    chosen.push_back(std::move(token));
  }
  return chosen;
}

void bytes_to_tokens(std::string_view bytes, const std::array<TokenId, 256>& byte_tokens,
                     std::vector<TokenId>& tokens) {
  tokens.clear();
  for (const char byte : bytes) tokens.push_back(byte_tokens[static_cast<std::uint8_t>(byte)]);
}

/// Which vocabulary entries their own bytes merge into. Most pieces of a text are such, and need no merging.
std::vector<bool> find_whole_tokens(const Vocabulary& vocabulary, const MergeTable& merges, bool ignore_merges,
                                    const std::array<TokenId, 256>& byte_tokens) {
  std::vector<bool> whole(static_cast<std::size_t>(vocabulary.size()), ignore_merges);
  if (ignore_merges) return whole;
  std::vector<TokenId> tokens;
  MergeTable::Scratch scratch;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.contains(id)) continue;
    bytes_to_tokens(vocabulary.bytes(id), byte_tokens, tokens);
    merges.merge(tokens, scratch);
    whole[static_cast<std::size_t>(id)] = tokens == std::vector<TokenId>{id};
  }
  return whole;
}

Tables::Tables(TokenizerFile file)
    : vocabulary(std::move(file.vocabulary)),
      merges(file.merges),
      compose(file.compose),
      steps(std::move(file.steps)),
      raw_added(added_tokens_with(file, false)),
      normalized_added(added_tokens_with(file, true)),
      is_added(static_cast<std::size_t>(vocabulary.size())) {
  for (const AddedToken& token : file.added) {
    added_ids[token.content] = token.id;
    is_added[static_cast<std::size_t>(token.id)] = true;
  }
  for (std::size_t byte = 0; byte < 256; ++byte)
    byte_tokens[byte] = vocabulary.find(std::string(1, static_cast<char>(byte)));
  is_whole = find_whole_tokens(vocabulary, merges, file.ignore_merges, byte_tokens);
}

/// The parts of `text` in order: on_token(id) for raw added tokens, on_text(normalised text) for what is valid between
/// them, on_byte(one byte) for what is not UTF-8.
template <class OnToken, class OnText, class OnByte>
void for_each_part(const Tables& tables, std::string_view text, OnToken&& on_token, OnText&& on_text,
                   OnByte&& on_byte) {
  const auto on_stretch = [&](std::string_view stretch) {
    while (!stretch.empty()) {
      const std::string_view valid = stretch.substr(0, valid_prefix(stretch));
      if (!valid.empty() && (!tables.compose || certainly_composed(valid))) {
        on_text(valid);
      } else if (!valid.empty()) {
        on_text(std::string_view(compose(valid)));
      }
      stretch.remove_prefix(valid.size());
      if (stretch.empty()) break;
      on_byte(stretch.substr(0, 1));
      stretch.remove_prefix(1);
    }
  };
  tables.raw_added.split(text, on_stretch, on_token);
}

/// One call of Tokenizer::encode.
class Encoding {
 public:
  explicit Encoding(const Tables& tables) : tables_(tables) {}

  std::vector<TokenId> run(std::string_view text) && {
    ids_.reserve(text.size() / 3 + 8);
    const auto on_token = [&](TokenId id) { ids_.push_back(id); };
    for_each_part(
        tables_, text, on_token,
        [&](std::string_view normalized) {
          tables_.normalized_added.split(normalized, [&](std::string_view stretch) { split(stretch, 0); }, on_token);
        },
        [&](std::string_view byte) { merge_piece(byte); });
    return std::move(ids_);
  }

 private:
  /// The steps from step_index on.
  void split(std::string_view piece, std::size_t step_index) {
    if (step_index == tables_.steps.size()) return merge_piece(piece);
    const SplitStep& step = tables_.steps[step_index];
    if (step.add_prefix_space && !piece.starts_with(' ')) return split_with_prefix(piece, step_index);
    if (!step.pattern) return split(piece, step_index + 1);
    step.pattern->for_each_piece(piece, scratch_, [&](std::string_view part) { split(part, step_index + 1); });
  }

  void split_with_prefix(std::string_view piece, std::size_t step_index) {
    const std::string prefixed = " " + std::string(piece);
    split(prefixed, step_index);
  }

  void merge_piece(std::string_view piece) {
    const TokenId whole = tables_.vocabulary.find(piece);
    if (whole >= 0 && tables_.is_whole[static_cast<std::size_t>(whole)]) return ids_.push_back(whole);
    bytes_to_tokens(piece, tables_.byte_tokens, tokens_);
    tables_.merges.merge(tokens_, merge_scratch_);
    ids_.insert(ids_.end(), tokens_.begin(), tokens_.end());
  }

  const Tables& tables_;
  SplitScratch scratch_;
  MergeTable::Scratch merge_scratch_;
  std::vector<TokenId> tokens_;
  std::vector<TokenId> ids_;
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

std::vector<TokenId> Tokenizer::encode(std::string_view text) const { return Encoding(state_->tables).run(text); }

std::string Tokenizer::normalize(std::string_view text) const {
  std::string normalized;
  const auto append = [&](std::string_view part) { normalized += part; };
  for_each_part(state_->tables, text, [&](TokenId id) { normalized += bytes_of(id); }, append, append);
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

bool Tokenizer::is_added(TokenId id) const {
  return id >= 0 && id < vocab_size() && state_->tables.is_added[static_cast<std::size_t>(id)];
}

int Tokenizer::vocab_size() const { return state_->tables.vocabulary.size(); }

const std::string& Tokenizer::json() const { return state_->json; }

}  // namespace carnot
