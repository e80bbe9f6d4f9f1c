#include "carnot/core/base/file.h"
#include "carnot/core/text/json_problems.h"
#include "carnot/core/text/qwen2_json.h"
#include "carnot/core/text/split_pattern.h"
#include "carnot/core/text/tokenizer_file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The file or its .xz; nothing if the folder has neither.
std::optional<fs::path> find_file(const fs::path& folder, const std::string& name) {
  for (const char* ending : {"", ".xz"})
    if (fs::path path = folder / (name + ending); is_there(path)) return path;
  return {};
}

Result<Json> read_json(const fs::path& path) {
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(path));
  return parse_json(text, path.string());
}

Json merges_of(std::string_view text) {
  Json merges = Json::array();
  for (std::string_view line : split_lines(text)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !line.starts_with("#version")) merges.push_back(std::string(line));
  }
  return merges;
}

/// {"151643": {"content": ...}, ...} as the list that tokenizer.json has.
Result<Json> added_of_config(const Json& decoder, const std::string& name) {
  Json added = Json::array();
  if (decoder.is_null()) return added;
  if (!decoder.is_object()) return Error{name + ": added_tokens_decoder: expected an object, got " + shown(decoder)};
  for (const auto& [key, value] : decoder.items()) {
    const bool digits = !key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == std::string::npos;
    if (!digits || !value.is_object())
      return Error{name + ": added_tokens_decoder." + key + ": expected a token id and an object"};
    Json token = value;
    token["id"] = std::stoi(key);
    added.push_back(std::move(token));
  }
  return added;
}

struct Description {
  std::string pattern = std::string(kQwen2Pattern);
  Json added_tokens = Json::array();
};

/// Added tokens and pattern from the files that may accompany the vocabulary.
Result<Description> read_description(const fs::path& folder) {
  Description description;
  if (const auto path = find_file(folder, "tokenizer_config.json")) {
    CARNOT_ASSIGN_OR_RETURN(const auto config, read_json(*path));
    CARNOT_ASSIGN_OR_RETURN(description.added_tokens,
                            added_of_config(member(config, "added_tokens_decoder"), path->string()));
  } else if (const auto path = find_file(folder, "tokenizer_description.json")) {
    CARNOT_ASSIGN_OR_RETURN(const auto file, read_json(*path));
    const Json& pattern = member(file, "pre_tokenizer_regex");
    if (pattern.is_string()) description.pattern = pattern.get<std::string>();
    const Json& added = member(file, "added_tokens");
    description.added_tokens = added.is_null() ? member(file, "added_tokens_qwen2_5") : added;
  }
  return description;
}

}  // namespace

Result<std::string> tokenizer_json_of_folder(const fs::path& folder) {
  const auto vocab_path = find_file(folder, "vocab.json");
  const auto merges_path = find_file(folder, "merges.txt");
  if (!vocab_path || !merges_path)
    return Error{folder.string() + ": expected tokenizer.json, or vocab.json and merges.txt; " +
                 (vocab_path ? "merges.txt" : "vocab.json") + " is missing"};
  CARNOT_ASSIGN_OR_RETURN(auto vocab, read_json(*vocab_path));
  CARNOT_ASSIGN_OR_RETURN(const auto merges, read_maybe_compressed(*merges_path));
  CARNOT_ASSIGN_OR_RETURN(const auto description, read_description(folder));
  const Json file = qwen2_tokenizer_json<Json>(description.pattern, description.added_tokens, std::move(vocab),
                                               merges_of(merges), false);
  // Bytes that are not UTF-8 in merges.txt cannot name a token; their replacement is refused by name later.
  return json_line(file);
}

}  // namespace carnot
