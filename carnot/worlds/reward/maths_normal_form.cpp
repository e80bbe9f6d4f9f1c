#include "carnot/worlds/reward/maths_normal_form.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "carnot/core/base/strings.h"
#include "carnot/worlds/reward/answer_metrics.h"

namespace carnot {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (auto found = text.find(from); found != std::string::npos; found = text.find(from, at)) {
    out.append(text, at, found - at).append(to);
    at = found + from.size();
  }
  text = out.append(text, at);
}

/// A LaTeX command, where no longer one begins with it: \left, not \leftarrow.
void replace_command(std::string& text, std::string_view command, std::string_view to) {
  std::string out;
  std::size_t at = 0;
  for (auto found = text.find(command); found != std::string::npos; found = text.find(command, found + 1)) {
    const auto end = found + command.size();
    if (end < text.size() && is_letter(text[end])) continue;
    out.append(text, at, found - at).append(to);
    at = end;
  }
  text = out.append(text, at);
}

/// Where the group that opens at `open` closes; npos where it does not.
std::size_t closing_brace(std::string_view text, std::size_t open) {
  int depth = 0;
  for (auto at = open; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '{')
      ++depth;
    else if (text[at] == '}' && --depth == 0)
      return at;
  }
  return std::string_view::npos;
}

std::string_view without_delimiters(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kDelimiters{
      {{"$$", "$$"}, {"$", "$"}, {"\\(", "\\)"}, {"\\[", "\\]"}}};
  text = trim(text);
  for (bool changed = true; changed;) {
    changed = false;
    if (text.ends_with('.')) {
      text = trim(text.substr(0, text.size() - 1));
      changed = true;
    }
    for (const auto& [open, close] : kDelimiters) {
      if (text.size() < open.size() + close.size() || !text.starts_with(open) || !text.ends_with(close)) continue;
      text = trim(text.substr(open.size(), text.size() - open.size() - close.size()));
      changed = true;
    }
  }
  return text;
}

void unify_signs(std::string& text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 27> kSigns{{
      {"\\!", ""},       {"{,}", ","},        {"\\;", " "},
      {"\\:", " "},      {"\\ ", " "},        {"~", " "},
      {"\n", " "},       {"\t", " "},         {"\u00a0", " "},
      {"\\%", ""},       {"%", ""},           {"\\$", ""},
      {"$", ""},         {"\u20ac", ""},      {"\u00a3", ""},
      {"^{\\circ}", ""}, {"^\\circ", ""},     {"\u00b0", ""},
      {"\u2212", "-"},   {"\u00d7", "*"},     {"\u00f7", "/"},
      {"\u00b7", "*"},   {"\u03c0", "\\pi "}, {"\u00b2", "^2"},
      {"\u00b3", "^3"},  {"**", "^"},         {"\u00bd", "\\frac{1}{2}"},
  }};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kCommands{{
      {"\\left", ""},
      {"\\right", ""},
      {"\\displaystyle", ""},
      {"\\quad", " "},
      {"\\qquad", " "},
      {"\\dfrac", "\\frac"},
      {"\\tfrac", "\\frac"},
      {"\\cfrac", "\\frac"},
      {"\\times", "*"},
      {"\\cdot", "*"},
      {"\\div", "/"},
      {"\\circ", ""},
      {"\\degree", ""},
      {"\\lbrace", "\\{"},
      {"\\rbrace", "\\}"},
  }};
  for (const auto& [from, to] : kSigns) replace_all(text, from, to);
  for (const auto& [from, to] : kCommands) replace_command(text, from, to);
}

/// `\,` between digits separates thousands; elsewhere it is a blank.
void resolve_thin_spaces(std::string& text) {
  for (auto at = text.find("\\,"); at != std::string::npos; at = text.find("\\,", at)) {
    const bool joins = at > 0 && is_digit(text[at - 1]) && at + 2 < text.size() && is_digit(text[at + 2]);
    text.replace(at, 2, joins ? "" : " ");
  }
}

/// \text{...} after something is a unit and is removed, with its power; elsewhere its content stays.
void resolve_text_commands(std::string& text) {
  constexpr std::array<std::string_view, 7> kCommands{"\\text",   "\\mathrm", "\\textbf",      "\\textit",
                                                      "\\mathbf", "\\mbox",   "\\operatorname"};
  for (const std::string_view command : kCommands) {
    std::size_t from = 0;
    for (auto at = text.find(command); at != std::string::npos; at = text.find(command, from)) {
      const auto open = at + command.size();
      const auto close = open < text.size() && text[open] == '{' ? closing_brace(text, open) : std::string::npos;
      from = at + 1;
      if (close == std::string::npos) continue;
      const std::string content = text.substr(open + 1, close - open - 1);
      const std::string_view following = std::string_view(text).substr(close + 1);
      const bool last = trim(following).empty() || following == "^2" || following == "^3" || following == "^{2}" ||
                        following == "^{3}";
      if (last && !trim(std::string_view(text).substr(0, at)).empty()) {
        text.resize(at);
      } else {
        text = text.substr(0, at) + content + std::string(following);
      }
      from = at;
    }
  }
}

/// `x = 5` and `k = \frac{1}{2}`: what follows the only equals sign, if a single name precedes it.
void take_right_side(std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || text.find('=', equals + 1) != std::string::npos) return;
  std::string_view name = trim(std::string_view(text).substr(0, equals));
  const bool command = name.starts_with('\\');
  if (command) name.remove_prefix(1);
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_letter) || (!command && name.size() > 2)) return;
  text.erase(0, equals + 1);
}

bool is_unit_word(std::string_view word, bool behind_blank) {
  constexpr std::array<std::string_view, 41> kUnits{
      "m",  "g",  "s",  "h",  "l",  "L",   "km",  "cm",    "mm",      "kg",    "mg",     "lb",   "lbs", "oz",
      "ft", "in", "mi", "yd", "hr", "hrs", "min", "sec",   "mph",     "kph",   "ml",     "mL",   "am",  "pm",
      "AM", "PM", "of", "an", "a",  "to",  "sq",  "cents", "dollars", "units", "inches", "feet", "USD"};
  constexpr std::array<std::string_view, 16> kNoUnits{"sqrt", "frac",  "pi",  "sin", "cos", "tan",    "log", "exp",
                                                      "and",  "infty", "mod", "min", "max", "choose", "inf", "nan"};
  if (std::find(kUnits.begin(), kUnits.end(), word) != kUnits.end()) return true;
  return behind_blank && word.size() >= 3 && std::find(kNoUnits.begin(), kNoUnits.end(), word) == kNoUnits.end();
}

/// " dollars", "km/h", " square feet", " cm^2", " miles per hour".
bool is_unit_phrase(std::string_view text) {
  bool any = false, behind_blank = false;
  while (!text.empty()) {
    const std::size_t blanks = std::min(text.find_first_not_of(' '), text.size());
    behind_blank = behind_blank || blanks > 0;
    text.remove_prefix(blanks);
    if (any && (text.starts_with('/') || text.starts_with('-') || text.starts_with('.'))) {
      text.remove_prefix(1);
      continue;
    }
    std::size_t length = 0;
    while (length < text.size() && is_letter(text[length])) ++length;
    if (length == 0) return any && text.empty();
    if (!is_unit_word(text.substr(0, length), behind_blank)) return false;
    any = true;
    text.remove_prefix(length);
    for (const std::string_view power : {"^2", "^3", "^{2}", "^{3}"})
      if (text.starts_with(power)) text.remove_prefix(power.size());
  }
  return any;
}

/// Plain words after a number.
void drop_units(std::string& text) {
  constexpr std::size_t kLongestUnit = 80;
  const std::size_t first = text.size() > kLongestUnit ? text.size() - kLongestUnit : 1;
  for (std::size_t at = std::max<std::size_t>(1, first); at < text.size(); ++at) {
    const char before = text[at - 1];
    if (!is_digit(before) && before != '}' && before != ')') continue;
    if (!is_unit_phrase(std::string_view(text).substr(at))) continue;
    text.resize(at);
    return;
  }
}

/// Takes out commas (outside lists in brackets) and blanks between groups of three digits. Other blanks between digits
/// separate a mixed number, `1 1/2`, or stay; all others go.
class Spacing {
 public:
  explicit Spacing(std::string_view text) : text_(text) {}

  std::string resolve() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (is_digit(c) && (at_ == 0 || (!is_digit(text_[at_ - 1]) && text_[at_ - 1] != '.'))) {
        number();
        continue;
      }
      const bool set_brace = at_ > 0 && text_[at_ - 1] == '\\';
      if (c == '(' || c == '[' || (c == '{' && set_brace)) ++depth_;
      if (c == ')' || c == ']' || (c == '}' && set_brace)) --depth_;
      if (c != ' ' || stays()) out_ += c;
      ++at_;
    }
    return std::move(out_);
  }

 private:
  std::size_t digits_from(std::size_t at) const {
    std::size_t end = at;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    return end - at;
  }

  void number() {
    const std::size_t head = digits_from(at_);
    out_ += text_.substr(at_, head);
    at_ += head;
    if (head > 3 || at_ >= text_.size()) return;
    const char separator = text_[at_];
    const bool separates = separator == ' ' || (separator == ',' && depth_ == 0);
    while (separates && at_ < text_.size() && text_[at_] == separator && digits_from(at_ + 1) == 3) {
      out_ += text_.substr(at_ + 1, 3);
      at_ += 4;
    }
  }

  /// A blank that keeps two numbers apart, or a command from the letter after it.
  bool stays() const {
    const std::size_t next = text_.find_first_not_of(' ', at_);
    if (next == std::string_view::npos || out_.empty()) return false;
    return (is_digit(out_.back()) && is_digit(text_[next])) || (ends_in_command() && is_letter(text_[next]));
  }

  bool ends_in_command() const {
    std::size_t letters = 0;
    while (letters < out_.size() && is_letter(out_[out_.size() - 1 - letters])) ++letters;
    return letters > 0 && letters < out_.size() && out_[out_.size() - 1 - letters] == '\\';
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string out_;
};

/// Braces around one-character arguments: \frac12, \frac1{72}, \sqrt2.
void brace_arguments(std::string& text) {
  constexpr std::array<std::pair<std::string_view, int>, 2> kCommands{{{"\\frac", 2}, {"\\sqrt", 1}}};
  for (const auto& [command, arguments] : kCommands) {
    std::string out;
    std::size_t at = 0;
    for (auto found = text.find(command); found != std::string::npos; found = text.find(command, at)) {
      const auto end = found + command.size();
      out.append(text, at, end - at);
      at = end;
      for (int i = 0; i < arguments && at < text.size(); ++i) {
        while (at < text.size() && text[at] == ' ') ++at;
        if (at < text.size() && (is_digit(text[at]) || (is_letter(text[at]) && at > end))) {
          out.append({'{', text[at++], '}'});
        } else {
          const auto close = at < text.size() && text[at] == '{' ? closing_brace(text, at) : std::string::npos;
          if (close == std::string::npos || i + 1 == arguments) break;
          out.append(text, at, close + 1 - at);
          at = close + 1;
        }
      }
    }
    text = out.append(text, at);
  }
}

/// The whole of it, or what follows a sign or an integer: 3/4, -3/4, 1 3/4.
void braced_fraction(std::string& text) {
  std::size_t begin = text.starts_with('-') ? 1 : 0;
  const auto blank = text.find(' ');
  const auto all_digits = [&](std::size_t from, std::size_t to) {
    return from < to && std::all_of(text.begin() + static_cast<std::ptrdiff_t>(from),
                                    text.begin() + static_cast<std::ptrdiff_t>(to), is_digit);
  };
  const auto slash = text.find('/');
  if (slash == std::string::npos) return;
  const std::size_t over = blank == std::string::npos ? begin : blank + 1;
  if (blank != std::string::npos && !all_digits(begin, blank)) return;
  if (!all_digits(over, slash) || !all_digits(slash + 1, text.size())) return;
  text = text.substr(0, blank == std::string::npos ? begin : blank) + "\\frac{" + text.substr(over, slash - over) +
         "}{" + text.substr(slash + 1) + "}";
}

/// Every number without zeros that say nothing: 18.00, 007, .5, 5.
void trim_zeros(std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at]) && !(text[at] == '.' && at + 1 < text.size() && is_digit(text[at + 1]))) {
      out += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    std::string whole = text.substr(at, end - at), fraction;
    if (end < text.size() && text[end] == '.') {
      const std::size_t begin = ++end;
      while (end < text.size() && is_digit(text[end])) ++end;
      fraction = text.substr(begin, end - begin);
    }
    whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
    fraction.erase(fraction.find_last_not_of('0') + 1);
    out += (whole.empty() ? "0" : whole) + (fraction.empty() ? "" : "." + fraction);
    at = end;
  }
  text = std::move(out);
}

}  // namespace

std::string normalize_maths(std::string_view answer) {
  if (answer.size() > kLongestMathsAnswer) return std::string(trim(answer));
  std::string text(without_delimiters(answer));
  unify_signs(text);
  resolve_thin_spaces(text);
  resolve_text_commands(text);
  take_right_side(text);
  text = std::string(trim(text));
  drop_units(text);
  replace_all(text, " and ", ", ");
  replace_all(text, " or ", ", ");
  text = Spacing(text).resolve();
  if (text.starts_with('+')) text.erase(0, 1);
  brace_arguments(text);
  braced_fraction(text);
  trim_zeros(text);
  if (text == "-0") text = "0";
  if (text == "0.5") text = "\\frac{1}{2}";
  return text;
}

}  // namespace carnot
