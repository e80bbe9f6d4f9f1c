#include "carnot/core/base/limits.h"
#include "carnot/core/text/json_problems.h"
#include "carnot/core/text/tokenizer_file.h"

namespace carnot {
namespace {

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
  if (!list.is_array() || list.size() > kMaxTokenizerSteps) {
    problems.add(list_path,
                 "expected an array of at most " + std::to_string(kMaxTokenizerSteps) + " parts, got " + shown(list));
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

// The following four read files that SentencePiece's BPE was converted to (Llama 2, Mistral).

constexpr const char* kBlankMark = "\u2581";

void read_mark_normalizer(const Json& normalizer, TokenizerFile& file, JsonProblems& problems) {
  if (normalizer.is_null()) return;
  bool& marked = file.normalizer_marks_blanks;
  for (const auto& [part, path] : parts_of(normalizer, "normalizers", "normalizer", problems)) {
    const std::string type = type_of(*part);
    if (type == "NFC" && !marked) {
      file.compose = true;
    } else if (type == "Prepend" && !marked && member(*part, "prepend") == kBlankMark) {
      file.blank_before = BlankBefore::Sections;
    } else if (type == "Replace" && member(member(*part, "pattern"), "String") == " " &&
               member(*part, "content") == kBlankMark) {
      marked = true;
    } else {
      problems.add(path, "expected NFC, Prepend of \"\u2581\" or Replace of \" \" by \"\u2581\", got " + part->dump());
    }
  }
}

void read_metaspace(const Json& part, TokenizerFile& file, JsonProblems& problems) {
  const std::string path = "pre_tokenizer";
  problems.check_object(part, path, {"type", "replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"});
  if (member(part, "replacement") != kBlankMark) problems.add(path + ".replacement", "expected \"\u2581\"");
  if (problems.flag(part, "split", true, path)) problems.add(path + ".split", "expected false, got true");
  const Json& scheme = member(part, "prepend_scheme");
  const bool always = scheme == "always" || (scheme.is_null() && problems.flag(part, "add_prefix_space", true, path));
  if (always)
    file.blank_before = BlankBefore::Stretches;
  else if (scheme == "first")
    file.blank_before = BlankBefore::Text;
  else if (!scheme.is_null() && scheme != "never")
    problems.add(path + ".prepend_scheme", "expected \"always\", \"first\" or \"never\", got " + shown(scheme));
}

void read_mark_decoder(const Json& decoder, TokenizerFile& file, JsonProblems& problems) {
  const auto sequence = [](Json steps) { return Json{{"type", "Sequence"}, {"decoders", std::move(steps)}}; };
  Json steps = {{{"type", "Replace"}, {"pattern", {{"String", kBlankMark}}}, {"content", " "}},
                {{"type", "ByteFallback"}},
                {{"type", "Fuse"}}};
  if (decoder == sequence(steps)) return;
  steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  file.strip_first_blank = decoder == sequence(steps);
  if (!file.strip_first_blank)
    problems.add("decoder",
                 "expected Replace of \"\u2581\" by \" \", ByteFallback, Fuse and perhaps Strip of one blank, got " +
                     shown(decoder));
}

/// Gemma's files do, after the normaliser has replaced all blanks.
bool splits_at_blanks(const Json& step) {
  return type_of(step) == "Split" && member(member(step, "pattern"), "String") == " ";
}

void read_character_pipeline(const Json& json, TokenizerFile& file, JsonProblems& problems) {
  file.byte_level = false;
  read_mark_normalizer(member(json, "normalizer"), file, problems);
  const Json& pre_tokenizer = member(json, "pre_tokenizer");
  if (file.normalizer_marks_blanks) {
    if (!pre_tokenizer.is_null() && !splits_at_blanks(pre_tokenizer))
      problems.add("pre_tokenizer", "expected null, got " + shown(pre_tokenizer));
  } else if (type_of(pre_tokenizer) == "Metaspace") {
    read_metaspace(pre_tokenizer, file, problems);
  } else {
    problems.add("pre_tokenizer.type", "expected \"Metaspace\", got " + shown(member(pre_tokenizer, "type")));
  }
  read_mark_decoder(member(json, "decoder"), file, problems);
}

}  // namespace

void read_pipeline(const Json& json, TokenizerFile& file, JsonProblems& problems) {
  if (member(member(json, "model"), "byte_fallback") == true && type_of(member(json, "decoder")) != "ByteLevel")
    return read_character_pipeline(json, file, problems);
  read_normalizer(member(json, "normalizer"), file, problems);
  read_pre_tokenizer(member(json, "pre_tokenizer"), file, problems);
  if (const Json& decoder = member(json, "decoder"); type_of(decoder) != "ByteLevel")
    problems.add("decoder.type", "expected \"ByteLevel\", got " + shown(member(decoder, "type")));
}

}  // namespace carnot
