#include "carnot/core/config/yaml_events.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <variant>

#include "carnot/core/base/limits.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr char kTooDeep[] = "nested too deep for a recipe";

/// Thrown inside the parser's callbacks only; never leaves this file.
struct Refused {
  YAML::Mark mark;
  std::string what;
};

/// Receives the parser's events and writes settings down; never builds a tree, so that nothing can grow in one.
class Flattener final : public YAML::EventHandler {
 public:
  Flattener(std::string_view text, std::string root) : text_(text), root_(std::move(root)) {}

  std::vector<FlatSetting> take() { return std::move(settings_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (awaits_key()) throw Refused{mark, "a key is empty"};
    if (in_list()) throw Refused{mark, "a list has an empty entry"};
    if (maps_.empty() && root_.empty()) return;  // an empty document
    put(mark, {.kind = SettingValue::Kind::Null});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{mark, "YAML aliases (*name) are not used in recipes; write the value again"};
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    refuse_open_quote(mark);
    // The library turns these two into bytes that are no UTF-8.
    if (valid_prefix(text) < text.size()) throw Refused{mark, "the escapes \\N and \\_ are not supported"};
    if (awaits_key()) return take_key(mark, text);
    const SettingValue::Scalar scalar{text, tag == "!"};
    if (in_list()) return list_.items.push_back(scalar);
    put(mark, {.kind = SettingValue::Kind::Scalar, .items = {scalar}});
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (awaits_key()) throw Refused{mark, "a key is a list; expected a word"};
    if (in_list()) throw Refused{mark, "a list inside a list; expected single values"};
    if (maps_.empty() && root_.empty()) throw Refused{mark, "the recipe is a list; expected `key: value` lines"};
    list_ = {.kind = SettingValue::Kind::List};
    list_mark_ = mark;
    in_list_ = true;
  }

  void OnSequenceEnd() override {
    in_list_ = false;
    put(list_mark_, std::move(list_));
  }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (awaits_key()) throw Refused{mark, "a key is a section; expected a word"};
    if (in_list()) throw Refused{mark, "a section inside a list; expected single values"};
    if (maps_.size() == kMaxRecipeDepth) throw Refused{mark, kTooDeep};
    maps_.push_back({.prefix = maps_.empty() ? root_ : maps_.back().full_key(), .seen = {}});
  }

  void OnMapEnd() override {
    maps_.pop_back();
    if (!maps_.empty()) maps_.back().has_key = false;
  }

 private:
  struct OpenMap {
    std::string prefix{};
    std::map<std::string, int> seen{};  ///< key, line
    std::string key{};
    YAML::Mark key_mark{};
    bool has_key = false;

    std::string full_key() const { return prefix.empty() ? key : prefix + "." + key; }
  };

  bool in_list() const { return in_list_; }
  bool awaits_key() const { return !in_list_ && !maps_.empty() && !maps_.back().has_key; }

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) throw Refused{mark, "YAML anchors (&name) are not used in recipes"};
  }

  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag != "?" && tag != "!" && !tag.empty())
      throw Refused{mark, "YAML tags (" + tag + ") are not used in recipes"};
  }

  /// The library takes a quote that never closes for one that closes with the text.
  void refuse_open_quote(const YAML::Mark& mark) const {
    const std::string_view rest = text_.substr(std::min(static_cast<std::size_t>(mark.pos), text_.size()));
    const char quote = rest.empty() ? ' ' : rest[0];
    if (quote != '"' && quote != '\'') return;
    const std::string_view escaped = quote == '"' ? "\\" : "''";  // a backslash escapes any character, '' is one quote
    std::size_t at = 1;
    while (at < rest.size()) {
      const bool escapes = rest.substr(at).starts_with(escaped);
      if (rest[at] == quote && !escapes) break;
      at += escapes ? 2 : 1;
    }
    if (at >= rest.size()) throw Refused{mark, "a quote opens here and does not close"};
  }

  void take_key(const YAML::Mark& mark, const std::string& key) {
    OpenMap& map = maps_.back();
    if (key == "<<") throw Refused{mark, "YAML merge keys (<<) are not used in recipes; see `extends`"};
    if (key.empty()) throw Refused{mark, "a key is empty"};
    const auto [first, is_new] = map.seen.emplace(key, mark.line + 1);
    if (!is_new)
      throw Refused{mark, "key \"" + key + "\" is set a second time; first on line " + std::to_string(first->second)};
    map.key = key;
    map.key_mark = mark;
    map.has_key = true;
  }

  void put(const YAML::Mark& mark, SettingValue value) {
    if (maps_.empty()) {
      if (root_.empty()) throw Refused{mark, "the recipe is a single value; expected `key: value` lines"};
      settings_.push_back({root_, mark.line + 1, mark.column + 1, std::move(value)});
      return;
    }
    OpenMap& map = maps_.back();
    settings_.push_back({map.full_key(), map.key_mark.line + 1, map.key_mark.column + 1, std::move(value)});
    map.has_key = false;
  }

  std::string_view text_;
  std::string root_;
  std::vector<OpenMap> maps_{};
  SettingValue list_{};
  YAML::Mark list_mark_{};
  bool in_list_ = false;
  std::vector<FlatSetting> settings_{};
};

struct Problem {
  int line = 1;
  int column = 1;
  std::string what;
};

/// What the YAML library would only describe by its consequences.
std::optional<Problem> unreadable_byte(std::string_view text) {
  if (text.size() > kMaxRecipeBytes) return Problem{1, 1, "larger than 1 MiB; this is no recipe"};
  int line = 1;
  int column = 1;
  bool indenting = true;
  int brackets = 0;  // open flow collections: the library descends once for each
  const std::size_t readable = valid_prefix(text);
  for (const char c : text.substr(0, readable)) {
    if (c == '\0') return Problem{line, column, "a zero byte; this is no text"};
    if (c == '\t' && indenting) return Problem{line, column, "indented with a tab; YAML wants spaces"};
    if (c == '[' || c == '{') ++brackets;
    if (c == ']' || c == '}') brackets = std::max(0, brackets - 1);
    if (brackets > 200) return Problem{line, column, kTooDeep};
    indenting = c == '\n' || (indenting && c == ' ');
    column = c == '\n' ? 1 : column + 1;
    line += c == '\n';
  }
  if (readable < text.size()) return Problem{line, column, "not UTF-8 text"};
  return std::nullopt;
}

using Flattened = std::variant<std::vector<FlatSetting>, Problem>;

Flattened flatten(std::string_view text, const std::string& root) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (auto problem = unreadable_byte(text)) return std::move(*problem);
  std::istringstream in{std::string(text)};
  Flattener flattener(text, root);
  try {
    YAML::Parser parser(in);
    parser.HandleNextDocument(flattener);
    Flattener next("", "");
    if (parser.HandleNextDocument(next)) return Problem{1, 1, "several YAML documents (---); expected one"};
  } catch (const Refused& refused) {
    return Problem{refused.mark.line + 1, refused.mark.column + 1, refused.what};
  } catch (const YAML::Exception& error) {
    return Problem{error.mark.line + 1, error.mark.column + 1, "not valid YAML: " + error.msg};
  }
  return flattener.take();
}

}  // namespace

Result<std::vector<FlatSetting>> flatten_yaml(std::string_view text, const std::string& name) {
  Flattened flat = flatten(text, "");
  if (const auto* problem = std::get_if<Problem>(&flat))
    return Error{name + ":" + std::to_string(problem->line) + ":" + std::to_string(problem->column) + ": " +
                 problem->what};
  return std::get<std::vector<FlatSetting>>(std::move(flat));
}

Result<std::vector<FlatSetting>> flatten_override(const std::string& key, std::string_view value) {
  if (value.empty())
    return std::vector<FlatSetting>{{key, 1, 1, {.kind = SettingValue::Kind::Scalar, .items = {{"", true}}}}};
  const char last = value.back();
  if (value[0] == '[' && last != ']') return Error{"a list opens with [ and does not end with ]"};
  if (value[0] == '{' && last != '}') return Error{"a section opens with { and does not end with }"};
  Flattened flat = flatten(value, key);
  if (const auto* problem = std::get_if<Problem>(&flat)) return Error{problem->what};
  return std::get<std::vector<FlatSetting>>(std::move(flat));
}

}  // namespace carnot
