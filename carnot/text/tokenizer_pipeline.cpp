#include "carnot/text/tokenizer_pipeline.h"

namespace carnot {
namespace {

/// Far above any published file; bounds the depth of the splitting.
constexpr std::size_t kMostSteps = 16;

std::string type_of(const Json& part) {
  const Json& type = member(part, "type");
  return type.is_string() ? type.get<std::string>() : std::string();
}

/// The parts of a Sequence (in `key`), or `part` itself.
std::vector<std::pair<const Json*, std::string>> parts_of(const Json& part, const char* key, const std::string& path,
                                                          JsonProblems& problems) {
  if (type_of(part) != "Sequence") return {{&part, path}};
  problems.check_object(part, path, {"type", key});
  const Json& list = member(part, key);
  const std::string list_path = path + "." + key;
  if (!list.is_array() || list.size() > kMostSteps) {
    problems.add(list_path,
                 "expected an array of at most " + std::to_string(kMostSteps) + " parts, got " + shown(list));
    return {};
  }
  std::vector<std::pair<const Json*, std::string>> parts;
  for (std::size_t i = 0; i < list.size(); ++i) parts.push_back({&list[i], list_path + "[" + std::to_string(i) + "]"});
  return parts;
}

void read_normalizer(const Json& normalizer, TokenizerFile& file, JsonProblems& problems) {
  if (normalizer.is_null()) return;
  for (const auto& [part, path] : parts_of(normalizer, "normalizers", "normalizer", problems)) {
    if (type_of(*part) == "NFC") {
      problems.check_object(*part, path, {"type"});
      file.compose = true;
    } else {
      problems.add(path + ".type", "expected \"NFC\", got " + shown(member(*part, "type")));
    }
  }
}

void add_split(Result<SplitPattern> pattern, const std::string& path, TokenizerFile& file, JsonProblems& problems) {
  if (!pattern) return problems.add(path, pattern.error().message);
  file.steps.push_back({.pattern = std::move(pattern).value()});
}

void read_split(const Json& part, const std::string& path, TokenizerFile& file, JsonProblems& problems) {
  problems.check_object(part, path, {"type", "pattern", "behavior", "invert"});
  if (problems.flag(part, "invert", false, path)) problems.add(path + ".invert", "expected false, got true");
  if (const Json& behavior = member(part, "behavior"); behavior != "Isolated")
    problems.add(path + ".behavior", "expected \"Isolated\", got " + shown(behavior));
  const Json& pattern = member(part, "pattern");
  const Json& regex = member(pattern, "Regex");
  const Json& literal = member(pattern, "String");
  if (regex.is_string() == literal.is_string())
    return problems.add(path + ".pattern", "expected {\"Regex\": ...} or {\"String\": ...}, got " + shown(pattern));
  if (regex.is_string()) {
    add_split(SplitPattern::compile(regex.get_ref<const std::string&>()), path + ".pattern.Regex", file, problems);
  } else {
    add_split(SplitPattern::literal(literal.get_ref<const std::string&>()), path + ".pattern.String", file, problems);
  }
}

void read_digits(const Json& part, const std::string& path, TokenizerFile& file, JsonProblems& problems) {
  problems.check_object(part, path, {"type", "individual_digits"});
  const bool single = problems.flag(part, "individual_digits", false, path);
  add_split(SplitPattern::compile(single ? R"(\p{N})" : R"(\p{N}+)"), path, file, problems);
}

void read_byte_level(const Json& part, const std::string& path, TokenizerFile& file, JsonProblems& problems) {
  problems.check_object(part, path, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (problems.flag(part, "add_prefix_space", true, path)) file.steps.push_back({.add_prefix_space = true});
  if (problems.flag(part, "use_regex", true, path))
    add_split(SplitPattern::compile(kGpt2Pattern), path, file, problems);
}

void read_pre_tokenizer(const Json& pre_tokenizer, TokenizerFile& file, JsonProblems& problems) {
  const auto parts = parts_of(pre_tokenizer, "pretokenizers", "pre_tokenizer", problems);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [part, path] = parts[i];
    const std::string type = type_of(*part);
    const bool last = i + 1 == parts.size();
    if (type == "ByteLevel" && last) {
      read_byte_level(*part, path, file, problems);
    } else if (last) {
      problems.add(path + ".type", "expected \"ByteLevel\" (last), got " + shown(member(*part, "type")));
    } else if (type == "Split") {
      read_split(*part, path, file, problems);
    } else if (type == "Digits") {
      read_digits(*part, path, file, problems);
    } else {
      problems.add(path + ".type", "expected \"Split\" or \"Digits\", got " + shown(member(*part, "type")));
    }
  }
  if (parts.empty()) problems.add("pre_tokenizer", "expected at least a ByteLevel step");
}

}  // namespace

void read_pipeline(const Json& json, TokenizerFile& file, JsonProblems& problems) {
  read_normalizer(member(json, "normalizer"), file, problems);
  read_pre_tokenizer(member(json, "pre_tokenizer"), file, problems);
  if (const Json& decoder = member(json, "decoder"); type_of(decoder) != "ByteLevel")
    problems.add("decoder.type", "expected \"ByteLevel\", got " + shown(member(decoder, "type")));
}

}  // namespace carnot
