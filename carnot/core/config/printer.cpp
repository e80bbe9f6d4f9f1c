#include "carnot/core/config/printer.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "carnot/core/config/numbers.h"

namespace carnot {
namespace {

bool is_plain(const std::string& text) {
  constexpr std::array kReserved = {"null", "Null", "NULL", "true", "false", "True", "False", "yes", "no", "on", "off"};
  if (text.empty() || parse_number(text) || text.back() == ' ') return false;
  if (std::find(kReserved.begin(), kReserved.end(), text) != kReserved.end()) return false;
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 && (c & 0x80) == 0; };
  const auto inner = [&](char c) {
    return letter(c) || (c >= '0' && c <= '9') || std::string_view("_-./+ ").find(c) != std::string_view::npos;
  };
  return (letter(text[0]) || text[0] == '/' || text[0] == '.') && std::all_of(text.begin(), text.end(), inner);
}

/// Plain where nothing could misread it, in double quotes otherwise.
std::string yaml_text(const std::string& text) {
  if (is_plain(text)) return text;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\x";
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class Item, class Write>
std::string yaml_list(const std::vector<Item>& items, const Write& write) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) out += (i > 0 ? ", " : "") + write(items[i]);
  return out + "]";
}

/// A section of the recipe: a line or a section for each of its keys, in order.
struct YamlSection {
  std::string name{};
  std::string value{};  ///< of a leaf; a section has none
  std::vector<YamlSection> inside{};

  YamlSection& child(std::string_view word) {
    for (YamlSection& section : inside)
      if (section.name == word) return section;
    inside.push_back({.name = std::string(word)});
    return inside.back();
  }

  void write(std::string& out, int depth) const {
    out += std::string(2 * depth, ' ') + name + ":";
    out += inside.empty() ? " " + value + "\n" : "\n";
    for (const YamlSection& section : inside) section.write(out, depth + 1);
  }
};

}  // namespace

void FieldTable::enter(std::string_view section) {
  prefixes_.push_back(prefixes_.back() + std::string(section) + (section.empty() ? "" : "."));
}

void FieldTable::begin_section(std::string_view name, std::string_view) { enter(name); }

void FieldTable::end_section() { prefixes_.pop_back(); }

void FieldTable::put(std::string_view name, std::string type, std::string value, std::string accepts,
                     std::string_view help) {
  FieldRow row{prefixes_.back() + std::string(name), std::move(type), std::move(value), std::move(accepts),
               std::string(help)};
  const auto same = std::find_if(rows_.begin(), rows_.end(), [&](const FieldRow& old) { return old.key == row.key; });
  if (same == rows_.end()) {
    rows_.push_back(std::move(row));
  } else {
    *same = std::move(row);
  }
}

void FieldTable::field(std::string_view name, bool& value, std::string_view help) {
  put(name, "bool", value ? "true" : "false", "", help);
}

void FieldTable::field(std::string_view name, std::int64_t& value, std::string_view help, const Limits& limits) {
  put(name, "int", std::to_string(value), describe(limits), help);
}

void FieldTable::field(std::string_view name, double& value, std::string_view help, const Limits& limits) {
  put(name, "float", write_number(value), describe(limits), help);
}

void FieldTable::field(std::string_view name, std::string& value, std::string_view help, const Limits& limits) {
  put(name, "str", yaml_text(value), describe(limits), help);
}

void FieldTable::field(std::string_view name, std::vector<double>& value, std::string_view help, const Limits& limits) {
  put(name, "list[float]", yaml_list(value, write_number), describe(limits), help);
}

void FieldTable::field(std::string_view name, std::vector<std::string>& value, std::string_view help,
                       const Limits& limits) {
  put(name, "list[str]", yaml_list(value, yaml_text), describe(limits), help);
}

std::string wrapped(const std::string& text, const std::string& indent, std::size_t width) {
  std::string out;
  std::string line = indent;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    const bool fits = line.size() + 1 + word.size() <= width || line == indent;
    if (!fits) {
      out += line + "\n";
      line = indent;
    }
    line += (line == indent ? "" : " ") + word;
    at = end + 1;
  }
  return out + line + "\n";
}

std::string to_yaml(const FieldTable& table) {
  YamlSection top;
  for (const FieldRow& row : table.rows()) {
    YamlSection* section = &top;
    std::string_view rest = row.key;
    for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      section = &section->child(rest.substr(0, dot));
      rest.remove_prefix(dot + 1);
    }
    section->child(rest).value = row.value;
  }
  std::string out;
  for (const YamlSection& section : top.inside) section.write(out, 0);
  return out;
}

std::string help_text(const FieldTable& table) {
  constexpr std::size_t kWidth = 100;
  std::string out;
  for (const FieldRow& row : table.rows()) {
    out +=
        "  " + row.key + "=" + row.value + "  (" + row.type + (row.accepts.empty() ? "" : ", " + row.accepts) + ")\n";
    out += wrapped(row.help, "      ", kWidth);
  }
  return out;
}

}  // namespace carnot
