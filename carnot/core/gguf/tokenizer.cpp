#include "carnot/core/gguf/tokenizer.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/gguf/pre_tokenizers.h"
#include "carnot/core/gguf/scored_merges.h"
#include "carnot/core/gguf/tokenizer_keys.h"
#include "carnot/core/text/qwen2_json.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {
namespace {

constexpr const char* kBlankMark = "\u2581";

struct Tokens {
  std::vector<std::string_view> texts{};
  std::vector<std::int64_t> types{};

  std::size_t size() const { return texts.size(); }
  bool is_added(std::size_t id) const {
    return types[id] == gguf_keys::kTypeUnknown || types[id] == gguf_keys::kTypeControl ||
           types[id] == gguf_keys::kTypeUserDefined;
  }
};

struct SpecialTokens {
  int bos = -1, eos = -1, pad = -1, unknown = -1;
  std::vector<int> ends{};
};

Tokens read_tokens(GgufMetadata& metadata) {
  metadata.require(gguf_keys::kTokens);
  metadata.require(gguf_keys::kTokenTypes);
  Tokens tokens{.texts = metadata.texts(gguf_keys::kTokens).value_or(std::vector<std::string_view>()),
                .types = metadata.integers(gguf_keys::kTokenTypes).value_or(std::vector<std::int64_t>())};
  if (metadata.any_problems()) return {};
  if (tokens.types.size() != tokens.size())
    metadata.problem(gguf_keys::kTokenTypes, "has " + std::to_string(tokens.types.size()) + " elements for " +
                                                 std::to_string(tokens.size()) + " tokens");
  for (const std::int64_t type : tokens.types)
    if (type < gguf_keys::kTypeNormal || type > gguf_keys::kTypeByte) {
      metadata.problem(gguf_keys::kTokenTypes, "holds " + std::to_string(type) + "; expected 1 to 6");
      break;
    }
  std::unordered_set<std::string_view> seen;
  std::size_t bytes = 0;
  for (const std::string_view text : tokens.texts) {
    bytes += text.size();
    if (seen.insert(text).second) continue;
    metadata.problem(gguf_keys::kTokens, "has " + shown(Json(text)) + " twice");
    break;
  }
  if (bytes > kMaxJsonBytes)
    metadata.problem(gguf_keys::kTokens, "has more than " + std::to_string(kMaxJsonBytes) + " bytes");
  return metadata.any_problems() ? Tokens() : tokens;
}

int read_id(GgufMetadata& metadata, const std::string& key, const Tokens& tokens, std::vector<std::string>& notes) {
  const auto id = metadata.integer(key);
  if (!id) return -1;
  if (*id >= 0 && *id < static_cast<std::int64_t>(tokens.size())) return static_cast<int>(*id);
  notes.push_back(key + " " + std::to_string(*id) + " names no token and is not taken over");
  return -1;
}

/// Those that end a text or begin one are control tokens, whatever their type says.
SpecialTokens read_special_tokens(GgufMetadata& metadata, Tokens& tokens, std::vector<std::string>& notes) {
  const auto id = [&](const char* key) { return read_id(metadata, key, tokens, notes); };
  SpecialTokens special{.bos = id(gguf_keys::kBos),
                        .eos = id(gguf_keys::kEnds[0]),
                        .pad = id(gguf_keys::kPad),
                        .unknown = id(gguf_keys::kUnknown)};
  for (const int end : {special.eos, id(gguf_keys::kEnds[1]), id(gguf_keys::kEnds[2])})
    if (end >= 0 && std::find(special.ends.begin(), special.ends.end(), end) == special.ends.end())
      special.ends.push_back(end);
  std::vector<int> control = special.ends;
  control.push_back(special.bos);
  for (const int one : control)
    if (one >= 0 && tokens.types[static_cast<std::size_t>(one)] == gguf_keys::kTypeNormal)
      tokens.types[static_cast<std::size_t>(one)] = gguf_keys::kTypeControl;
  return special;
}

Json added_tokens(const Tokens& tokens) {
  Json added = Json::array();
  for (std::size_t id = 0; id < tokens.size(); ++id)
    if (tokens.is_added(id))
      added.push_back({{"id", id},
                       {"content", tokens.texts[id]},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", tokens.types[id] != gguf_keys::kTypeUserDefined}});
  return added;
}

Json vocabulary(const Tokens& tokens, std::size_t size) {
  Json vocab = Json::object();
  for (std::size_t id = 0; id < size; ++id) vocab[std::string(tokens.texts[id])] = id;
  return vocab;
}

/// Added tokens at the end are no part of the vocabulary that merges reach, nor are unused ones after them: rows that
/// pad the embedding.
std::size_t vocabulary_size(const Tokens& tokens) {
  std::size_t size = tokens.size();
  while (size > 0 && tokens.types[size - 1] == gguf_keys::kTypeUnused) --size;
  while (size > 0 && tokens.is_added(size - 1)) --size;
  return size;
}

Json read_merges(GgufMetadata& metadata) {
  Json merges = Json::array();
  metadata.require(gguf_keys::kMerges);
  const auto texts = metadata.texts(gguf_keys::kMerges).value_or(std::vector<std::string_view>());
  for (const std::string_view text : texts) {
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos || text.find(' ', blank + 1) != std::string_view::npos) {
      metadata.problem(gguf_keys::kMerges, "expected two tokens with a blank between them, got " + shown(Json(text)));
      break;
    }
    merges.push_back({text.substr(0, blank), text.substr(blank + 1)});
  }
  return merges;
}

const GgufPreTokenizer* find_pre_tokenizer(GgufMetadata& metadata, std::vector<std::string>& notes) {
  const std::string name = metadata.text(gguf_keys::kPre).value_or("default");
  if (name == "default") {
    notes.push_back(std::string(gguf_keys::kPre) +
                    " names no pre-tokenizer: GPT-2's is taken, which may split text in another " +
                    "way than the model's own");
    return &kGgufPreTokenizers[0];
  }
  std::string known = "default";
  for (const GgufPreTokenizer& one : kGgufPreTokenizers) {
    if (one.name == name) return &one;
    known.append(", ").append(one.name);
  }
  metadata.problem(gguf_keys::kPre,
                   "the pre-tokenizer " + shown(Json(name)) + " is not known; expected one of " + known);
  return nullptr;
}

Json byte_level_step(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json pre_tokenizer_json(const GgufPreTokenizer& pre) {
  Json steps = Json::array();
  if (pre.single_digits) steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
  if (!pre.pattern.empty())
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", pre.pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
  steps.push_back(byte_level_step(pre.pattern.empty()));
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

Json byte_level_json(GgufMetadata& metadata, const Tokens& tokens, const GgufPreTokenizer& pre) {
  Json json = qwen2_tokenizer_json<Json>(pre.pattern, added_tokens(tokens), vocabulary(tokens, vocabulary_size(tokens)),
                                         read_merges(metadata), pre.ignore_merges);
  json["normalizer"] = pre.compose ? Json{{"type", "NFC"}} : Json();
  json["pre_tokenizer"] = pre_tokenizer_json(pre);
  return json;
}

Json read_scored_merges(GgufMetadata& metadata, const Tokens& tokens) {
  metadata.require(gguf_keys::kScores);
  const auto scores = metadata.numbers(gguf_keys::kScores).value_or(std::vector<double>());
  const bool usable = scores.size() == tokens.size() &&
                      std::all_of(scores.begin(), scores.end(), [](double score) { return std::isfinite(score); });
  if (!usable) metadata.problem(gguf_keys::kScores, "expected a finite number for each token");
  if (metadata.any_problems()) return {};
  std::vector<ScoredToken> scored;
  for (std::size_t id = 0; id < tokens.size(); ++id)
    if (tokens.types[id] == gguf_keys::kTypeNormal) scored.push_back({tokens.texts[id], scores[id]});
  const auto merges = merges_of_scores(scored);
  if (!merges) metadata.problem(gguf_keys::kTokens, merges.error().message);
  Json list = Json::array();
  if (merges)
    for (const auto& [left, right] : *merges) list.push_back({left, right});
  return list;
}

/// As transformers converts Llama 2's and Mistral's.
Json sentence_piece_json(GgufMetadata& metadata, const Tokens& tokens, const SpecialTokens& special) {
  if (metadata.flag("tokenizer.ggml.remove_extra_whitespaces").value_or(false))
    metadata.problem("tokenizer.ggml.remove_extra_whitespaces", "is true, which is not computed");
  if (metadata.has("tokenizer.ggml.precompiled_charsmap"))
    metadata.problem("tokenizer.ggml.precompiled_charsmap", "this normalisation is not computed");
  const bool blank = metadata.flag(gguf_keys::kAddSpacePrefix).value_or(true);
  const Json replace = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kBlankMark}};
  Json normalizers = Json::array({replace});
  if (blank) normalizers.insert(normalizers.begin(), Json{{"type", "Prepend"}, {"prepend", kBlankMark}});
  Json decoders = Json::array({{{"type", "Replace"}, {"pattern", {{"String", kBlankMark}}}, {"content", " "}},
                               {{"type", "ByteFallback"}},
                               {{"type", "Fuse"}}});
  if (blank) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  Json json = qwen2_tokenizer_json<Json>("", added_tokens(tokens), vocabulary(tokens, tokens.size()),
                                         read_scored_merges(metadata, tokens), false);
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(normalizers)}};
  json["pre_tokenizer"] = nullptr;
  json["decoder"] = {{"type", "Sequence"}, {"decoders", std::move(decoders)}};
  if (special.unknown >= 0) json["model"]["unk_token"] = tokens.texts[static_cast<std::size_t>(special.unknown)];
  json["model"]["fuse_unk"] = true;
  json["model"]["byte_fallback"] = true;
  return json;
}

/// Puts bos before each text; Carnot leaves that to the chat format.
Json begin_with(std::string_view token, int id) {
  const auto put = [&](int kind) { return Json{{"SpecialToken", {{"id", token}, {"type_id", kind}}}}; };
  const auto text = [](const char* which, int kind) { return Json{{"Sequence", {{"id", which}, {"type_id", kind}}}}; };
  Json special = Json::object();
  special[std::string(token)] = {{"id", token}, {"ids", {id}}, {"tokens", Json::array({token})}};
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({put(0), text("A", 0)})},
          {"pair", Json::array({put(0), text("A", 0), put(1), text("B", 1)})},
          {"special_tokens", std::move(special)}};
}

std::string config_json(GgufMetadata& metadata, const Tokens& tokens, const SpecialTokens& special,
                        std::int64_t context, std::vector<std::string>& notes) {
  OrderedJson config = OrderedJson::object();
  const auto name = [&](const char* key, int id) {
    if (id >= 0) config[key] = tokens.texts[static_cast<std::size_t>(id)];
  };
  name("bos_token", special.bos);
  name("eos_token", special.eos);
  name("pad_token", special.pad);
  name("unk_token", special.unknown);
  config["clean_up_tokenization_spaces"] = false;
  config["model_max_length"] = context;
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  if (auto chat = metadata.text(gguf_keys::kChatTemplate)) config["chat_template"] = std::move(*chat);
  for (const auto& [key, value] : metadata.file().values)
    if (key.starts_with(std::string(gguf_keys::kChatTemplate) + "."))
      notes.push_back(std::string(key) + ": only the template named " + std::string(gguf_keys::kChatTemplate) +
                      " is taken over");
  if (metadata.flag(gguf_keys::kAddEos).value_or(false))
    notes.push_back(std::string(gguf_keys::kAddEos) + " is not taken over: no token is put after a text");
  return config.dump(2) + "\n";
}

}  // namespace

Result<GgufTokenizer> read_gguf_tokenizer(const GgufFile& file, std::int64_t context, const std::string& name) {
  GgufMetadata metadata(file, name);
  GgufTokenizer made;
  metadata.require(gguf_keys::kModel);
  const std::string model = metadata.text(gguf_keys::kModel).value_or("");
  const bool byte_level = model == "gpt2", pieces = model == "llama";
  if (!metadata.any_problems() && !byte_level && !pieces)
    metadata.problem(gguf_keys::kModel, "expected \"gpt2\" (byte-level BPE) or \"llama\" (SentencePiece's BPE), got " +
                                            shown(Json(model)));
  const GgufPreTokenizer* pre = byte_level ? find_pre_tokenizer(metadata, made.notes) : nullptr;
  Tokens tokens = read_tokens(metadata);
  if (metadata.any_problems()) return metadata.error();
  const SpecialTokens special = read_special_tokens(metadata, tokens, made.notes);
  Json json = pre ? byte_level_json(metadata, tokens, *pre) : sentence_piece_json(metadata, tokens, special);
  const bool begins = metadata.flag(gguf_keys::kAddBos).value_or(pieces || pre->begins_texts);
  if (begins && special.bos >= 0)
    json["post_processor"] = begin_with(tokens.texts[static_cast<std::size_t>(special.bos)], special.bos);
  made.tokenizer_config_json = config_json(metadata, tokens, special, context, made.notes);
  if (metadata.any_problems()) return metadata.error();
  made.tokenizer_json = json.dump();
  CARNOT_RETURN_IF_ERROR(Tokenizer::parse(made.tokenizer_json, name + ": its tokenizer as tokenizer.json"));
  made.num_tokens = static_cast<int>(tokens.size());
  made.bos_token = special.bos;
  made.pad_token = special.pad;
  made.eos_tokens = special.ends;
  return made;
}

}  // namespace carnot
