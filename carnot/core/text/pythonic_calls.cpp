#include "carnot/core/text/pythonic_calls.h"

#include <algorithm>
#include <optional>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/text/refused_call.h"
#include "carnot/core/text/spaced_json.h"

namespace carnot {
namespace {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// MCP servers name functions with dashes, modules are joined by dots.
bool is_name_character(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-' || (c & 0x80) != 0;
}

struct NamedValue {
  std::string_view text{};
  std::optional<bool> value{};  ///< nothing: null
};
constexpr NamedValue kNamedValues[] = {{"True", true},   {"true", true}, {"False", false},
                                       {"false", false}, {"None", {}},   {"null", {}}};

struct Escape {
  char letter = 0, byte = 0;
};
constexpr Escape kEscapes[] = {{'n', '\n'}, {'t', '\t'}, {'r', '\r'}, {'b', '\b'},  {'f', '\f'},  {'a', '\a'},
                               {'v', '\v'}, {'0', '\0'}, {'"', '"'},  {'\'', '\''}, {'\\', '\\'}, {'/', '/'}};

/// Those that LFM2's template writes.
constexpr Escape kWrittenEscapes[] = {{'\\', '\\'}, {'\'', '\''}, {'n', '\n'}, {'r', '\r'}};

class PythonReader {
 public:
  explicit PythonReader(std::string_view text) : text_(text) {}

  Result<PythonicCalls> calls(bool in_brackets) {
    PythonicCalls read;
    if (in_brackets && !take('[')) return expected("[");
    do {
      CARNOT_ASSIGN_OR_RETURN(auto call, one_call());
      read.calls.push_back(std::move(call));
    } while (another_follows(in_brackets));
    if (in_brackets && !take(']')) return expected("] or a comma");
    read.end = at_;
    return read;
  }

 private:
  /// Past what is between two calls. A comma or a line end is needed, and another name.
  bool another_follows(bool in_brackets) {
    const std::size_t before = at_;
    skip_blanks();
    const bool line_ended = text_.substr(before, at_ - before).find('\n') != std::string_view::npos;
    const bool comma = take(',');
    skip_blanks();
    if ((comma || (line_ended && !in_brackets)) && at_ < text_.size() && is_name_character(text_[at_])) return true;
    at_ = before;
    return false;
  }

  Result<ToolCall> one_call() {
    ToolCall call{.name = name()};
    if (call.name.empty()) return expected("the name of a function");
    if (!take('(')) return expected("(");
    OrderedJson arguments = OrderedJson::object();
    while (!take(')')) {
      if (!arguments.empty() && !take(',')) return expected("a comma or )");
      if (!arguments.empty() && take(')')) break;
      const std::string key = name();
      if (key.empty() || !take('=')) return expected("an argument as name=value");
      CARNOT_ASSIGN_OR_RETURN(auto given, value(2));
      if (!arguments.emplace(key, std::move(given)).second) return refused("argument '" + key + "' is given twice");
    }
    call.arguments = spaced_json(json_line(arguments));
    return call;
  }

  Result<OrderedJson> value(std::size_t depth) {
    skip_blanks();
    if (depth > kMaxJsonDepth) return refused("its values nest too deeply");
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '"' || c == '\'') {
      CARNOT_ASSIGN_OR_RETURN(auto text, string_value());
      return OrderedJson(std::move(text));
    }
    if (c == '[') return list(depth);
    if (c == '{') return dict(depth);
    if (c == '-' || is_digit(c)) return number();
    const std::size_t begin = at_;
    const std::string word = name();
    for (const NamedValue& named : kNamedValues)
      if (named.text == word) return named.value ? OrderedJson(*named.value) : OrderedJson(nullptr);
    at_ = begin;
    return expected("a string, number, True, False, None, list or dict");
  }

  Result<OrderedJson> list(std::size_t depth) {
    OrderedJson made = OrderedJson::array();
    take('[');
    while (!take(']')) {
      if (!made.empty() && !take(',')) return expected("a comma or ]");
      if (!made.empty() && take(']')) break;
      CARNOT_ASSIGN_OR_RETURN(auto one, value(depth + 1));
      made.push_back(std::move(one));
    }
    return made;
  }

  Result<OrderedJson> dict(std::size_t depth) {
    OrderedJson made = OrderedJson::object();
    take('{');
    while (!take('}')) {
      if (!made.empty() && !take(',')) return expected("a comma or }");
      if (!made.empty() && take('}')) break;
      skip_blanks();
      if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return expected("a string as key");
      CARNOT_ASSIGN_OR_RETURN(const auto key, string_value());
      if (!take(':')) return expected(":");
      CARNOT_ASSIGN_OR_RETURN(auto one, value(depth + 1));
      if (!made.emplace(key, std::move(one)).second) return refused("key '" + key + "' is given twice");
    }
    return made;
  }

  Result<OrderedJson> number() {
    const std::size_t begin = at_;
    constexpr std::string_view kLetters = "0123456789+-.eE";
    at_ = std::min(text_.find_first_not_of(kLetters, at_), text_.size());
    const std::string digits(text_.substr(begin, at_ - begin));
    auto read = parse_json<OrderedJson>(digits, "a number");
    if (read) return read;
    at_ = begin;
    return expected("a number as in JSON");
  }

  Result<std::string> string_value() {
    const char quote = text_[at_++];
    std::string made;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] != '\\') {
        made += text_[at_++];
      } else if (const Status read = escape(made); !read) {
        return read.error();
      }
    }
    if (at_ == text_.size()) return expected(std::string(1, quote));
    ++at_;
    return with_replacement_characters(made);
  }

  Status escape(std::string& made) {
    ++at_;
    const char letter = at_ < text_.size() ? text_[at_] : '\0';
    if (letter == 'x' || letter == 'u' || letter == 'U') return coded_character(made);
    const auto known = std::ranges::find(kEscapes, letter, &Escape::letter);
    if (at_ == text_.size() || known == std::end(kEscapes)) {
      made += '\\';
      return Done{};
    }
    made += known->byte;
    ++at_;
    return Done{};
  }

  /// \x41, \u0041 or \U00000041, behind the backslash.
  Status coded_character(std::string& made) {
    auto code = hex_digits();
    if (!code) return expected("the digits of a character");
    const bool is_high = *code >= 0xD800 && *code < 0xDC00;
    if (is_high && text_.substr(at_, 2) == "\\u") {
      ++at_;
      const auto low = hex_digits();
      if (!low || *low < 0xDC00 || *low >= 0xE000) return expected("the second half of a character");
      code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
    }
    if (*code > 0x10FFFF || (*code >= 0xD800 && *code < 0xE000)) return expected("a character");
    append_utf8(made, *code);
    return Done{};
  }

  std::optional<char32_t> hex_digits() {
    const char letter = text_[at_++];
    const std::size_t count = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    char32_t code = 0;
    for (const std::size_t end = at_ + count; at_ < end; ++at_) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const char digit = at_ < text_.size() ? lower_case(text_.substr(at_, 1))[0] : ' ';
      const auto is = kDigits.find(digit);
      if (is == std::string_view::npos) return std::nullopt;
      code = code * 16 + static_cast<char32_t>(is);
    }
    return code;
  }

  std::string name() {
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    return with_replacement_characters(text_.substr(begin, at_ - begin));
  }

  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }

  /// Past blanks and `c`, or past blanks alone.
  bool take(char c) {
    skip_blanks();
    const bool there = at_ < text_.size() && text_[at_] == c;
    at_ += there;
    return there;
  }

  Error refused(const std::string& why) const {
    return refused_call(why + " (byte " + std::to_string(at_) + " of the calls)");
  }
  Error expected(const std::string& what) const { return refused("expected " + what); }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string python_string(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    const auto escape = std::ranges::find(kWrittenEscapes, c, &Escape::byte);
    quoted += escape == std::end(kWrittenEscapes) ? std::string(1, c) : std::string{'\\', escape->letter};
  }
  return quoted + "'";
}

std::string value_text(const OrderedJson& value, PythonicValues values) {
  if (values == PythonicValues::Json || value.is_number() || value.is_structured())
    return spaced_json(json_line(value));
  if (value.is_string()) return python_string(value.get<std::string>());
  if (value.is_null()) return "None";
  return value.get<bool>() ? "True" : "False";
}

}  // namespace

Result<PythonicCalls> read_pythonic_calls(std::string_view text, bool in_brackets) {
  return PythonReader(text).calls(in_brackets);
}

std::string pythonic_call(const ToolCall& call, PythonicValues values) {
  const auto arguments = parse_json_object<OrderedJson>(call.arguments, "the arguments of a call").value();
  std::string text;
  for (const auto& [key, value] : arguments.items())
    text += (text.empty() ? "" : ", ") + key + "=" + value_text(value, values);
  return call.name + "(" + text + ")";
}

}  // namespace carnot
