#include "carnot/core/text/tokenizer_file.h"

#include <cstring>
#include <unordered_map>
#include <unordered_set>

#include "carnot/core/base/check.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/byte_alphabet.h"
#include "carnot/core/text/json_problems.h"
#include "carnot/core/text/text_ends.h"

namespace carnot {
namespace {

std::uint32_t hash_of(std::string_view bytes) {
  constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15u;
  std::uint64_t hash = bytes.size() * kMultiplier;
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t length = bytes.size() < 8 ? bytes.size() : 8;
    std::memcpy(&word, bytes.data(), length);
    hash = (hash ^ word) * kMultiplier;
    hash ^= hash >> 29;
    bytes.remove_prefix(length);
  }
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

using IdsBySymbols = std::unordered_map<std::string_view, TokenId>;

std::optional<TokenId> id_in(const Json& value) {
  if (!value.is_number_integer()) return {};
  const auto id = value.get<std::int64_t>();
  return id >= 0 && id <= kMaxTokenId ? std::optional(static_cast<TokenId>(id)) : std::nullopt;
}

std::string expected_id(const Json& value) {
  return "expected a token id from 0 to " + std::to_string(kMaxTokenId) + ", got " + shown(value);
}

/// Keys whose other values would change the merges.
void check_model_settings(const Json& model, JsonProblems& problems) {
  const Json& type = member(model, "type");
  if (!type.is_null() && type != "BPE") problems.add("model.type", "expected \"BPE\", got " + shown(type));
  const Json& dropout = member(model, "dropout");
  if (!dropout.is_null() && dropout != 0) problems.add("model.dropout", "expected null, got " + shown(dropout));
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json& affix = member(model, key);
    if (!affix.is_null() && affix != "")
      problems.add(std::string("model.") + key, "expected null or \"\", got " + shown(affix));
  }
}

/// "0x41" for 'A'.
std::string byte_number(int byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return {'0', 'x', kDigits[byte / 16], kDigits[byte % 16]};
}

/// "<0x41>" for 'A'.
std::string byte_symbol(int byte) { return "<" + byte_number(byte) + ">"; }

/// The byte that a SentencePiece token of this text means.
std::optional<char> named_byte(std::string_view text) {
  for (int byte = 0; text.size() == 6 && text.starts_with("<0x") && byte < 256; ++byte)
    if (text == byte_symbol(byte)) return static_cast<char>(byte);
  return {};
}

void insert_token(const std::string& symbols, TokenId id, TokenizerFile& file) {
  if (file.byte_level) {
    const auto bytes = symbols_to_bytes(symbols);
    file.vocabulary.insert(id, bytes ? *bytes : symbols, bytes.has_value());
  } else if (const auto byte = named_byte(symbols)) {
    file.vocabulary.insert(id, std::string(1, *byte), false);
  } else {
    const std::string text = with_blanks(symbols);
    file.vocabulary.insert(id, text, file.vocabulary.find(text) < 0);
  }
}

/// Hugging Face's BPE leaves out a byte of a byte-level file that the vocabulary lacks, or writes the unknown token.
void find_byte_tokens(const Json& model, const IdsBySymbols& ids, TokenizerFile& file, JsonProblems& problems) {
  const bool may_lack = file.byte_level && member(model, "byte_fallback") != true;
  int found = 0;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string symbol =
        file.byte_level ? bytes_to_symbols(std::string(1, static_cast<char>(byte))) : byte_symbol(byte);
    const auto at = ids.find(symbol);
    found += at != ids.end() ? 1 : 0;
    file.byte_tokens[byte] = at != ids.end() ? at->second : -1;
    if (at == ids.end() && !may_lack) problems.add("model.vocab", "lacks the byte symbol \"" + symbol + "\"");
  }
  if (may_lack && found == 0) problems.add("model.vocab", "has none of the 256 byte symbols");
  const Json& unknown = member(model, "unk_token");
  if (found == 256 || unknown.is_null()) return;
  const auto at = unknown.is_string() ? ids.find(unknown.get_ref<const std::string&>()) : ids.end();
  if (at == ids.end())
    return problems.add("model.unk_token", "expected null or an entry of the vocabulary, got " + shown(unknown));
  file.unknown = at->second;
  file.fuse_unknown = problems.flag(model, "fuse_unk", false, "model");
}

/// Fills the vocabulary; the returned views point into `model`.
IdsBySymbols read_vocabulary(const Json& model, TokenizerFile& file, JsonProblems& problems) {
  const Json& vocab = member(model, "vocab");
  IdsBySymbols ids;
  if (!vocab.is_object()) {
    problems.add("model.vocab", "expected an object of token ids, got " + shown(vocab));
    return ids;
  }
  ids.reserve(vocab.size());
  for (const auto& [symbols, value] : vocab.get_ref<const Json::object_t&>()) {
    const auto id = id_in(value);
    if (!id || file.vocabulary.contains(*id)) {
      problems.add("model.vocab[" + shown(symbols) + "]",
                   id ? "id " + std::to_string(*id) + " already belongs to another token" : expected_id(value));
      continue;
    }
    insert_token(symbols, *id, file);
    ids.emplace(symbols, *id);
  }
  find_byte_tokens(model, ids, file, problems);
  return ids;
}

/// "a b" or ["a", "b"].
std::optional<std::pair<std::string_view, std::string_view>> merge_parts(const Json& value) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string())
    return {{value[0].get_ref<const std::string&>(), value[1].get_ref<const std::string&>()}};
  if (!value.is_string()) return {};
  const std::string_view text = value.get_ref<const std::string&>();
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || text.find(' ', blank + 1) != std::string_view::npos) return {};
  return {{text.substr(0, blank), text.substr(blank + 1)}};
}

std::vector<Merge> read_merges(const Json& merges, const IdsBySymbols& ids, JsonProblems& problems) {
  std::vector<Merge> read;
  if (!merges.is_array()) {
    problems.add("model.merges", "expected an array of pairs, got " + shown(merges));
    return read;
  }
  read.reserve(merges.size());
  std::string joined;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const Json& value = merges[i];
    if (value.is_string() && value.get_ref<const std::string&>().starts_with("#version")) continue;
    const auto complain = [&](const std::string& what) {
      problems.add("model.merges[" + std::to_string(i) + "]", what);
    };
    const auto parts = merge_parts(value);
    if (!parts) {
      complain("expected \"a b\" or [\"a\", \"b\"], got " + shown(value));
      continue;
    }
    const auto id_of = [&](std::string_view symbols) {
      const auto found = ids.find(symbols);
      if (found == ids.end()) complain(shown(std::string(symbols)) + " is not in the vocabulary");
      return found == ids.end() ? -1 : found->second;
    };
    joined.assign(parts->first).append(parts->second);
    const Merge merge{.left = id_of(parts->first), .right = id_of(parts->second), .result = id_of(joined)};
    if (merge.left >= 0 && merge.right >= 0 && merge.result >= 0) read.push_back(merge);
  }
  return read;
}

void read_model(const Json& model, TokenizerFile& file, JsonProblems& problems) {
  problems.check_object(model, "model",
                        {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                         "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (!model.is_object()) return;
  check_model_settings(model, problems);
  file.ignore_merges = problems.flag(model, "ignore_merges", false, "model");
  const IdsBySymbols ids = read_vocabulary(model, file, problems);
  file.merges = read_merges(member(model, "merges"), ids, problems);
}

std::optional<AddedToken> read_added_token(const Json& value, const std::string& path, JsonProblems& problems) {
  if (!problems.check_object(value, path,
                             {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}))
    return {};
  AddedToken token{.content = problems.text(value, "content", path)};
  token.lstrip = problems.flag(value, "lstrip", false, path);
  token.rstrip = problems.flag(value, "rstrip", false, path);
  token.single_word = problems.flag(value, "single_word", false, path);
  token.special = problems.flag(value, "special", false, path);
  token.normalized = problems.flag(value, "normalized", false, path);
  const auto id = id_in(member(value, "id"));
  if (!id) problems.add(path + ".id", expected_id(member(value, "id")));
  token.id = id.value_or(0);
  if (token.content.empty()) problems.add(path + ".content", "expected at least one character");
  return id && !token.content.empty() ? std::optional(std::move(token)) : std::nullopt;
}

/// Whether the vocabulary's entry is the added token itself, bare or in the file's own spelling.
bool stands_for(const TokenizerFile& file, TokenId id, const std::string& content) {
  const std::string_view bytes = file.vocabulary.bytes(id);
  return bytes == content || (file.byte_level ? bytes_to_symbols(bytes) == content : bytes == with_blanks(content));
}

void read_added_tokens(const Json& added, TokenizerFile& file, JsonProblems& problems) {
  if (added.is_null()) return;
  if (!added.is_array()) return problems.add("added_tokens", "expected an array, got " + shown(added));
  std::unordered_set<std::string> contents;
  for (std::size_t i = 0; i < added.size(); ++i) {
    const std::string path = "added_tokens[" + std::to_string(i) + "]";
    const auto token = read_added_token(added[i], path, problems);
    if (!token) continue;
    if (!contents.insert(token->content).second) {
      problems.add(path + ".content", shown(token->content) + " is listed twice");
      continue;
    }
    if (!file.vocabulary.contains(token->id)) {
      const bool composed = token->normalized && file.compose;
      file.vocabulary.insert(token->id, composed ? compose(token->content) : token->content, false);
    } else if (!stands_for(file, token->id, token->content)) {
      problems.add(path + ".id", std::to_string(token->id) + " already belongs to another token");
      continue;
    }
    file.added.push_back(*token);
  }
}

/// A post-processor that does more than put tokens around a text belongs to an encoder, and has no effect here.
void read_text_begin(const Json& post_processor, TokenizerFile& file) {
  const auto ends = read_text_ends(post_processor);
  if (!ends) return;
  for (const std::string& text : ends->first)
    for (const AddedToken& token : file.added)
      if (token.content == text) file.text_begin.push_back(token.id);
}

}  // namespace

void Vocabulary::insert(TokenId id, std::string_view bytes, bool reachable) {
  CARNOT_CHECK(id >= 0 && !contains(id), "token id " + std::to_string(id));
  if (id >= size()) entries_.resize(static_cast<std::size_t>(id) + 1);
  entries_[id] = {.offset = arena_.size(), .length = static_cast<std::uint32_t>(bytes.size())};
  arena_ += bytes;
  if (!reachable) return;
  CARNOT_CHECK(find(bytes) < 0, "two tokens of the same bytes");
  if (2 * ++used_ > slots_.size()) grow();
  place({.hash = hash_of(bytes), .id = id});
}

TokenId Vocabulary::find(std::string_view bytes_wanted) const {
  const std::uint32_t hash = hash_of(bytes_wanted);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask; slots_[at].id >= 0; at = (at + 1) & mask)
    if (slots_[at].hash == hash && bytes(slots_[at].id) == bytes_wanted) return slots_[at].id;
  return -1;
}

void Vocabulary::place(Slot slot) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = slot.hash & mask;
  while (slots_[at].id >= 0) at = (at + 1) & mask;
  slots_[at] = slot;
}

void Vocabulary::grow() {
  std::vector<Slot> old(2 * slots_.size());
  old.swap(slots_);
  for (const Slot& slot : old)
    if (slot.id >= 0) place(slot);
}

std::string lacking_bytes(const TokenizerFile& file) {
  std::vector<std::string> ranges;
  for (int byte = 0; byte < 256; ++byte) {
    if (file.byte_tokens[byte] >= 0) continue;
    const int first = byte;
    while (byte < 255 && file.byte_tokens[byte + 1] < 0) ++byte;
    ranges.push_back(byte_number(first));
    if (byte > first) ranges.back() += (byte == first + 1 ? ", " : " to ") + byte_number(byte);
  }
  return join(ranges);
}

std::string with_blanks(std::string_view text) {
  constexpr std::string_view kMark = "\u2581";
  std::string out;
  for (std::size_t mark = text.find(kMark); mark != std::string_view::npos; mark = text.find(kMark)) {
    out.append(text.substr(0, mark)).append(" ");
    text.remove_prefix(mark + kMark.size());
  }
  return out.append(text);
}

Result<TokenizerFile> read_tokenizer_json(std::string_view text, const std::string& name) {
  CARNOT_ASSIGN_OR_RETURN(const Json json, parse_json(text, name));
  JsonProblems problems(name);
  problems.check_object(json, "",
                        {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
                         "post_processor", "decoder", "model"});
  if (!json.is_object()) return problems.error();
  TokenizerFile file;
  for (const char* key : {"truncation", "padding"})
    if (!member(json, key).is_null()) problems.add(key, "expected null, got " + shown(member(json, key)));
  read_pipeline(json, file, problems);
  read_model(member(json, "model"), file, problems);
  read_added_tokens(member(json, "added_tokens"), file, problems);
  read_text_begin(member(json, "post_processor"), file);
  if (problems.any()) return problems.error();
  return file;
}

}  // namespace carnot
