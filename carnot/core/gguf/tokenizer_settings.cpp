#include "carnot/core/gguf/tokenizer_settings.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "carnot/core/gguf/pre_tokenizers.h"
#include "carnot/core/gguf/scored_merges.h"
#include "carnot/core/gguf/tokenizer_keys.h"
#include "carnot/core/text/json_problems.h"
#include "carnot/core/text/text_ends.h"
#include "carnot/core/text/tokenizer_file.h"

namespace carnot {
namespace {

/// How a tokenizer.json splits text, as GgufPreTokenizer has it.
struct Split {
  std::string pattern{};
  bool single_digits = false;
};

bool flag_of(const Json& step, const char* key, bool otherwise) {
  const Json& value = member(step, key);
  return value.is_boolean() ? value.get<bool>() : otherwise;
}

/// Nothing where no GgufPreTokenizer could say it. REQUIRES: what read_tokenizer_json() accepts.
std::optional<Split> split_of(const Json& pre_tokenizer) {
  const Json& listed = member(pre_tokenizer, "pretokenizers");
  Split split;
  bool is_last = false;
  for (const Json& step : listed.is_array() ? listed : Json::array({pre_tokenizer})) {
    const Json &type = member(step, "type"), &pattern = member(member(step, "pattern"), "Regex");
    const bool is_first = split.pattern.empty() && !split.single_digits;
    if (is_last) return {};
    if (type == "Digits" && is_first && flag_of(step, "individual_digits", false)) {
      split.single_digits = true;
    } else if (type == "Split" && split.pattern.empty() && pattern.is_string()) {
      split.pattern = pattern.get<std::string>();
    } else if (type == "ByteLevel" && !flag_of(step, "add_prefix_space", true) &&
               split.pattern.empty() == flag_of(step, "use_regex", true)) {
      if (split.pattern.empty()) split.pattern = kGpt2Pattern;
      is_last = true;
    } else {
      return {};
    }
  }
  return is_last ? std::optional(split) : std::nullopt;
}

class TokenizerWriter {
 public:
  TokenizerWriter(const FolderTokenizer& folder, std::string name, GgufSettings& settings,
                  std::vector<std::string>& problems)
      : folder_(folder), name_(std::move(name)), settings_(settings), problems_(problems) {}

  void add() {
    auto file = read_tokenizer_json(folder_.json, name_ + ": tokenizer.json");
    auto config = folder_.config_json.empty()
                      ? Result<Json>(Json::object())
                      : parse_json_object(folder_.config_json, name_ + ": tokenizer_config.json");
    if (!file) problems_.push_back(file.error().message);
    if (!config) problems_.push_back(config.error().message);
    if (!file || !config) return;
    json_ = parse_json<Json>(folder_.json, name_).value();
    config_ = std::move(*config);
    name_tokens(*file);
    check_added_tokens(*file);
    if (file->byte_level)
      add_byte_level(*file);
    else
      add_sentence_piece(*file);
    add_special_tokens(file->byte_level);
    settings_[gguf_keys::kTokens] = std::move(texts_);
    settings_[gguf_keys::kTokenTypes] = std::move(types_);
    if (folder_.chat_template) settings_[gguf_keys::kChatTemplate] = *folder_.chat_template;
  }

 private:
  void problem(const std::string& what) { problems_.push_back(name_ + ": " + what); }

  void name_token(std::int64_t id, const std::string& text, gguf_keys::TokenType type) {
    if (id >= folder_.num_rows) return;
    ids_[text] = static_cast<int>(id);
    texts_[static_cast<std::size_t>(id)] = text;
    types_[static_cast<std::size_t>(id)] = type;
  }

  void name_tokens(const TokenizerFile& file) {
    if (file.vocabulary.size() > folder_.num_rows)
      problem("its tokenizer has " + std::to_string(file.vocabulary.size()) + " tokens, its embedding only " +
              std::to_string(folder_.num_rows) + " rows");
    types_.assign(static_cast<std::size_t>(folder_.num_rows), gguf_keys::kTypeUnused);
    for (int id = 0; id < folder_.num_rows; ++id) texts_.push_back("[PAD" + std::to_string(id) + "]");
    const std::set<TokenId> bytes(file.byte_tokens.begin(), file.byte_tokens.end());
    for (const auto& [text, id] : json_["model"]["vocab"].items()) {
      const bool is_byte = !file.byte_level && bytes.contains(id.get<TokenId>());
      name_token(id, text, is_byte ? gguf_keys::kTypeByte : gguf_keys::kTypeNormal);
    }
    for (const AddedToken& token : file.added)
      name_token(token.id, token.content, token.special ? gguf_keys::kTypeControl : gguf_keys::kTypeUserDefined);
  }

  /// GGUF has one spelling and one type for each token, and no further settings.
  void check_added_tokens(const TokenizerFile& file) {
    const Json& vocab = json_["model"]["vocab"];
    std::set<TokenId> spelled;
    for (const auto& [text, id] : vocab.items()) spelled.insert(id.get<TokenId>());
    for (const AddedToken& token : file.added) {
      std::string settings;
      if (token.single_word) settings += " single_word";
      if (token.lstrip) settings += " lstrip";
      if (token.rstrip) settings += " rstrip";
      if (token.normalized && !file.byte_level) settings += " normalized";
      if (spelled.contains(token.id) && !vocab.contains(token.content)) settings += " another spelling in model.vocab";
      if (!settings.empty())
        problem("tokenizer.json: the added token " + shown(Json(token.content)) + " has" + settings);
    }
  }

  void add_byte_level(const TokenizerFile& file) {
    settings_[gguf_keys::kModel] = std::string("gpt2");
    add_pre_tokenizer(file);
    if (file.unknown >= 0) problem("tokenizer.json: model.unk_token replaces bytes; expected null");
    std::vector<std::string> merges;
    for (const Merge& merge : file.merges)
      merges.push_back(std::string(text_of(merge.left)).append(" ").append(text_of(merge.right)));
    settings_[gguf_keys::kMerges] = std::move(merges);
  }

  void add_pre_tokenizer(const TokenizerFile& file) {
    const std::optional<Split> split = split_of(json_["pre_tokenizer"]);
    std::string known;
    for (const GgufPreTokenizer& pre : kGgufPreTokenizers) {
      const std::string_view pattern = pre.pattern.empty() ? kGpt2Pattern : pre.pattern;
      if (split && split->pattern == pattern && split->single_digits == pre.single_digits &&
          file.compose == pre.compose && file.ignore_merges == pre.ignore_merges) {
        settings_[gguf_keys::kPre] = std::string(pre.name);
        return;
      }
      known.append(known.empty() ? "" : ", ").append(pre.name);
    }
    problem("tokenizer.json: normalizer, pre_tokenizer and ignore_merges together are those of no pre-tokenizer that " +
            std::string("llama.cpp and Carnot know by name; expected one of ") + known);
  }

  void add_sentence_piece(const TokenizerFile& file) {
    settings_[gguf_keys::kModel] = std::string("llama");
    const bool sections = file.blank_before == BlankBefore::Sections;
    if (!sections && file.blank_before != BlankBefore::Nothing)
      problem(
          "tokenizer.json: puts a blank before some texts only; expected before each text between added tokens, or "
          "before none");
    settings_[gguf_keys::kAddSpacePrefix] = sections;
    if (const Json& unknown = member(json_["model"], "unk_token"); unknown.is_string()) {
      const int id = id_of(unknown, "model.unk_token");
      if (id >= 0) types_[static_cast<std::size_t>(id)] = gguf_keys::kTypeUnknown;
      add_id(gguf_keys::kUnknown, id);
    }
    add_scores(file);
  }

  /// By the place of a token's first merge, so that the merges can be found again from the scores.
  void add_scores(const TokenizerFile& file) {
    std::vector<float> scores(texts_.size(), 0);
    std::set<MergeParts> merges;
    bool in_order = true;
    float score = 0;
    TokenId last = -1;
    for (const Merge& merge : file.merges) {
      if (merge.result >= folder_.num_rows) return;
      float& of_result = scores[static_cast<std::size_t>(merge.result)];
      if (merge.result != last) in_order = in_order && of_result == 0;
      if (merge.result != last) of_result = --score;
      last = merge.result;
      merges.emplace(text_of(merge.left), text_of(merge.right));
    }
    std::vector<ScoredToken> scored;
    for (std::size_t id = 0; id < texts_.size(); ++id) {
      if (types_[id] != gguf_keys::kTypeNormal) continue;
      if (scores[id] == 0) scores[id] = score - 1;
      scored.push_back({texts_[id], scores[id]});
    }
    const auto found = merges_of_scores(scored);
    if (!in_order || !found || std::set(found->begin(), found->end()) != merges)
      problem("tokenizer.json: model.merges follow from no scores of tokens, which SentencePiece's GGUF files have");
    settings_[gguf_keys::kScores] = std::move(scores);
  }

  void add_special_tokens(bool byte_level) {
    const int bos = special("bos_token", folder_.bos_token);
    std::vector<int> ends{special("eos_token", -1)};
    for (const int end : folder_.eos_tokens)
      if (std::find(ends.begin(), ends.end(), end) == ends.end()) ends.push_back(end);
    if (ends[0] < 0) ends.erase(ends.begin());
    if (ends.empty() || ends.size() > std::size(gguf_keys::kEnds))
      problem("has " + std::to_string(ends.size()) + " tokens that end a message; expected one to three");
    for (std::size_t i = 0; i < std::min(ends.size(), std::size(gguf_keys::kEnds)); ++i)
      add_id(gguf_keys::kEnds[i], ends[i]);
    add_id(gguf_keys::kBos, bos);
    add_id(gguf_keys::kPad, special("pad_token", folder_.pad_token));
    if (byte_level) add_id(gguf_keys::kUnknown, special("unk_token", -1));
    add_text_ends(bos, ends.empty() ? -1 : ends[0]);
  }

  void add_text_ends(int bos, int eos) {
    const auto ends = read_text_ends(member(json_, "post_processor"));
    const auto is = [&](const std::vector<std::string>& texts, int id) {
      return texts.empty() || (texts.size() == 1 && id >= 0 && id == id_of(texts[0], ""));
    };
    if (!ends || !is(ends->first, bos) || !is(ends->last, eos))
      problem("tokenizer.json: post_processor does more than to put bos_token before and eos_token after a text");
    settings_[gguf_keys::kAddBos] = ends && !ends->first.empty();
    if (ends && !ends->last.empty()) settings_[gguf_keys::kAddEos] = true;
  }

  std::string_view text_of(TokenId id) const {
    return id < folder_.num_rows ? std::string_view(texts_[static_cast<std::size_t>(id)]) : std::string_view();
  }

  void add_id(const char* key, int id) {
    if (id >= 0) settings_[key] = static_cast<std::uint32_t>(id);
  }

  int id_of(const Json& text, const char* where) {
    const auto found = text.is_string() ? ids_.find(text.get<std::string>()) : ids_.end();
    if (found != ids_.end()) return found->second;
    problem(std::string(where) + ": " + shown(text) + " is no token");
    return -1;
  }

  /// As tokenizer_config.json names it; `otherwise` where it does not.
  int special(const char* which, int otherwise) {
    const Json& named = member(config_, which);
    if (named.is_null()) return otherwise;
    return id_of(named.is_object() ? member(named, "content") : named, which);
  }

  const FolderTokenizer& folder_;
  std::string name_;
  GgufSettings& settings_;
  std::vector<std::string>& problems_;
  Json json_{};
  Json config_{};
  std::vector<std::string> texts_{};
  std::vector<std::int32_t> types_{};
  std::unordered_map<std::string, int> ids_{};
};

}  // namespace

void add_tokenizer(const FolderTokenizer& folder, const std::string& name, GgufSettings& settings,
                   std::vector<std::string>& problems) {
  TokenizerWriter(folder, name, settings, problems).add();
}

}  // namespace carnot
