#include "carnot/core/config/document.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "carnot/core/base/file.h"
#include "carnot/core/config/numbers.h"
#include "carnot/core/config/recipe_paths.h"
#include "carnot/core/config/yaml_events.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr char kExtends[] = "extends";
constexpr char kCommandLine[] = "command line";
constexpr std::size_t kShownLength = 60;

bool same_scalar(const SettingValue::Scalar& a, const SettingValue::Scalar& b) {
  if (a.text == b.text) return true;
  const auto left = parse_number(a.text);
  const auto right = parse_number(b.text);
  return !a.quoted && !b.quoted && left && right && *left == *right;
}

std::string canonical_name(const fs::path& path) {
  std::error_code failed;
  const fs::path canonical = fs::weakly_canonical(path, failed);
  return failed ? path.string() : canonical.string();
}

/// "a.b" of "a.b.name", empty otherwise.
std::string_view section_of_name(std::string_view key) {
  constexpr std::string_view kName = ".name";
  return key.ends_with(kName) ? key.substr(0, key.size() - kName.size()) : std::string_view();
}

}  // namespace

std::string SettingValue::shown() const {
  if (kind == Kind::Null) return "nothing";
  std::string text;
  for (const Scalar& item : items) {
    if (!text.empty()) text += ", ";
    text += item.quoted ? "\"" + item.text + "\"" : item.text;
  }
  if (text.size() > kShownLength) text = text.substr(0, kShownLength) + "...";
  std::replace(text.begin(), text.end(), '\n', ' ');
  return kind == Kind::List ? "[" + text + "]" : text;
}

bool same_value(const SettingValue& a, const SettingValue& b) {
  return a.kind == b.kind && std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_scalar);
}

/// Lays recipe over recipe and overrides over both.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(const RecipeSource& source) : source_(source) {}

  Result<Document> build(std::string_view text, const std::string& name) {
    CARNOT_RETURN_IF_ERROR(add_recipe(text, name));
    folder_.clear();
    document_.override_layer_ = ++layer_;
    for (const std::string& assignment : source_.overrides) add_override(assignment);
    divide();
    append();
    settle_names();
    settle_environment();
    return std::move(document_);
  }

 private:
  /// The recipes that this one extends come first: a later layer wins.
  Status add_recipe(std::string_view text, const std::string& name) {
    open_.push_back(canonical_name(name));
    CARNOT_ASSIGN_OR_RETURN(auto flat, flatten_yaml(text, name));
    for (const FlatSetting& setting : flat)
      if (setting.key == kExtends) {
        CARNOT_RETURN_IF_ERROR(add_base(setting, name));
      }
    ++layer_;
    document_.num_written_ = static_cast<int>(flat.size());  // the outermost recipe is read last
    folder_ = fs::path(name).parent_path();
    for (FlatSetting& setting : flat) {
      if (setting.key == kExtends) continue;
      const std::string place = name + ":" + std::to_string(setting.line) + ":" + std::to_string(setting.column);
      add(setting.key, place, std::move(setting.value));
    }
    return Done{};
  }

  Status add_base(const FlatSetting& setting, const std::string& name) {
    const std::string place = name + ":" + std::to_string(setting.line) + ": " + kExtends;
    if (setting.value.kind != SettingValue::Kind::Scalar)
      return Error{place + ": expected the name of one recipe, found " + setting.value.shown()};
    const fs::path path = fs::path(name).parent_path() / setting.value.items.front().text;
    const std::string canonical = canonical_name(path);
    if (std::find(open_.begin(), open_.end(), canonical) != open_.end())
      return Error{place + ": " + path.string() + " extends itself"};
    auto text = read_file(path);
    if (!text) return Error{place + ": " + text.error().message};
    return add_recipe(*text, path.string());
  }

  void add_override(const std::string& assignment) {
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0) {
      document_.problems_.push_back(std::string(kCommandLine) + ": expected key=value, found \"" + assignment + "\"");
      return;
    }
    const std::string key = assignment.substr(0, equals);
    if (key == kExtends) {
      document_.problems_.push_back(std::string(kCommandLine) + ": " + kExtends + " is only allowed in a recipe");
      return;
    }
    auto flat = flatten_override(key, std::string_view(assignment).substr(equals + 1));
    if (!flat) {
      document_.problems_.push_back(std::string(kCommandLine) + ": " + key + ": " + flat.error().message);
      return;
    }
    for (FlatSetting& setting : *flat) add(setting.key, kCommandLine, std::move(setting.value));
  }

  /// Files a setting under its own key, or under those that an alias means.
  void add(const std::string& written, const std::string& place, SettingValue value) {
    const Alias* alias = find_alias(source_.aliases, written);
    if (alias == nullptr) return file({written, written, place, std::move(value), layer_});
    if (value.kind == SettingValue::Kind::Null) return;  // verl's files list keys without a value, too
    for (SettingValue::Scalar& item : value.items) {
      const auto ours = translated(*alias, item.text);
      if (ours && ours->empty()) return;
      if (ours) item.text = *ours;
    }
    if (alias->former)
      document_.notes_.push_back(place + ": " + written + " is now " + std::string(alias->ours.front()) +
                                 "; the old name works in this release only");
    if (alias->ours.empty()) return pass_over(*alias, {"", written, place, std::move(value), layer_});
    for (const std::string_view key : alias->ours) {
      Setting setting{std::string(key), written, place, value, layer_, alias->rank, alias->environment, alias->note};
      if (!alias->divides.empty())
        divisors_.push_back({std::string(alias->divides), std::move(setting)});
      else if (!alias->appends.empty())
        endings_.push_back({std::string(alias->appends), std::move(setting)});
      else
        file(std::move(setting));
    }
  }

  static std::optional<std::string_view> translated(const Alias& alias, const std::string& word) {
    for (const auto& [theirs, ours] : alias.words) {
      const auto theirs_on = parse_switch(theirs);
      if (word == theirs || (theirs_on && parse_switch(word) == theirs_on)) return ours;
    }
    return std::nullopt;
  }

  void pass_over(const Alias& alias, const Setting& setting) {
    const std::string start = setting.place + ": " + setting.written + ": ";
    if (!alias.note.empty()) {
      document_.notes_.push_back(start + "has no meaning here and is ignored: " + std::string(alias.note));
    } else {
      document_.problems_.push_back(start + setting.value.shown() + " has no counterpart here; " +
                                    std::string(alias.advice));
    }
  }

  /// A setting counts unless a later layer sets it too, or another word of the command line after it.
  void file(Setting setting) {
    if (!folder_.empty() && names_files(setting.key))
      for (SettingValue::Scalar& item : setting.value.items) item.text = found_from(folder_, item.text);
    const auto [present, is_new] = document_.settings_.try_emplace(setting.key, setting);
    if (is_new || present->second.layer > setting.layer) return;
    const bool is_later = present->second.layer < setting.layer;
    const bool is_last_word = document_.is_override(setting) && present->second.rank == setting.rank;
    if (is_later || is_last_word || present->second.rank < setting.rank) std::swap(present->second, setting);
    if (is_later || is_last_word || setting.rank == AliasRank::Default) return;
    if (present->second.rank == setting.rank) return check_agreement(present->second, setting);
    if (!same_value(present->second.value, setting.value))
      document_.notes_.push_back(setting.shown() + ": is ignored, for " + present->second.written + " is off (" +
                                 present->second.place + ")");
  }

  /// What verl counts per part, Carnot counts in parts: known once the whole is.
  void divide() {
    for (Divisor& divisor : divisors_) {
      const Setting* whole = document_.find(divisor.dividend);
      const auto dividend = whole == nullptr ? std::nullopt : whole_number(whole->value);
      const auto size = whole_number(divisor.setting.value);
      if (!dividend || !size || *size < 1 || *dividend % *size != 0) {
        document_.problems_.push_back(
            divisor.setting.shown() + ": expected a divisor of " + divisor.dividend +
            (whole == nullptr ? ", which must be set too" : " (" + whole->value.shown() + ")") + ", found " +
            divisor.setting.value.shown());
        continue;
      }
      divisor.setting.value.items.front().text = std::to_string(*dividend / *size);
      file(std::move(divisor.setting));
    }
  }

  /// What verl keeps in two keys, such as a file and a function in it.
  void append() {
    for (const Ending& ending : endings_) {
      const auto found = document_.settings_.find(ending.setting.key);
      if (found != document_.settings_.end() && found->second.value.kind == SettingValue::Kind::Scalar &&
          ending.setting.value.kind == SettingValue::Kind::Scalar)
        found->second.value.items.front().text += ending.before + ending.setting.value.items.front().text;
      else
        document_.problems_.push_back(ending.setting.shown() + ": belongs to " + ending.setting.key +
                                      ", which is not set");
    }
  }

  /// Keys of one environment, asked for by another program's name for them.
  void settle_environment() {
    const Setting* name = document_.find("env.name");
    const std::string chosen = name == nullptr ? "" : name->value.shown();
    std::erase_if(document_.settings_, [&](const auto& entry) {
      const Setting& setting = entry.second;
      if (setting.environment.empty() || setting.environment == chosen) return false;
      if (!setting.note.empty())
        document_.notes_.push_back(setting.shown() +
                                   ": has no meaning here and is ignored: " + std::string(setting.note));
      else
        document_.problems_.push_back(setting.shown() + ": set env.name: " + std::string(setting.environment) +
                                      (chosen.empty() ? "" : "; this recipe has " + chosen));
      return true;
    });
  }

  static std::optional<std::int64_t> whole_number(const SettingValue& value) {
    return value.kind == SettingValue::Kind::Scalar ? parse_whole_number(value.items.front().text) : std::nullopt;
  }

  void check_agreement(const Setting& first, const Setting& second) {
    if (same_value(first.value, second.value)) return;
    document_.problems_.push_back(second.shown() + ": " + second.value.shown() + " contradicts " + first.written +
                                  ": " + first.value.shown() + " (" + first.place + "); both set " + first.key);
  }

  /// `method: grpo` and `method.name: grpo` are one setting: the later layer's stays.
  void settle_names() {
    std::vector<std::string> outdated;
    for (const auto& [key, setting] : document_.settings_) {
      const auto section = document_.settings_.find(std::string(section_of_name(key)));
      if (section == document_.settings_.end() || section->second.value.kind != SettingValue::Kind::Scalar) continue;
      if (section->second.layer == setting.layer) check_agreement(section->second, setting);
      outdated.push_back(section->second.layer > setting.layer ? key : section->first);
    }
    for (const std::string& key : outdated) document_.settings_.erase(key);
  }

  /// A setting that is `dividend`'s value divided by the one that is written.
  struct Divisor {
    std::string dividend{};
    Setting setting{};
  };

  /// A setting whose value is written behind its key's.
  struct Ending {
    std::string before{};
    Setting setting{};
  };

  const RecipeSource& source_;
  Document document_{};
  std::vector<Divisor> divisors_{};
  std::vector<Ending> endings_{};
  std::vector<std::string> open_{};  ///< recipes being read, to notice a circle
  int layer_ = 0;
  fs::path folder_{};  ///< of the recipe whose settings are added; empty: the command line, or where Carnot runs
};

Result<Document> Document::parse(std::string_view text, const std::string& name, const RecipeSource& source) {
  return DocumentBuilder(source).build(text, name);
}

Result<Document> Document::load(const fs::path& path, const RecipeSource& source) {
  CARNOT_ASSIGN_OR_RETURN(auto text, read_file(path));
  return parse(text, path.string(), source);
}

void Document::replace(const std::string& key, std::string_view before, std::string_view now) {
  const auto found = settings_.find(key);
  if (found == settings_.end() || is_override(found->second)) return;
  SettingValue& value = found->second.value;
  if (value.kind == SettingValue::Kind::Scalar && value.items.front().text == before) value.items.front().text = now;
}

const Setting* Document::find(std::string_view key) const {
  const auto own = settings_.find(std::string(key));
  if (own != settings_.end()) return &own->second;
  const auto section = settings_.find(std::string(section_of_name(key)));
  const bool is_name = section != settings_.end() && section->second.value.kind == SettingValue::Kind::Scalar;
  return is_name ? &section->second : nullptr;
}

}  // namespace carnot
