#include "carnot/worlds/reward/maths_answer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/worlds/reward/answer_metrics.h"
#include "carnot/worlds/reward/maths_normal_form.h"
#include "carnot/worlds/reward/maths_value.h"

namespace carnot {
namespace {

constexpr std::size_t kClip = 300;  // characters at the end of a response, in verl's extraction
constexpr std::size_t kLongestFraction = 200;
constexpr int kDeepestList = 8;
constexpr std::size_t kLongestList = 64;

bool is_numeral(char c) { return is_digit(c) || c == '.' || c == ','; }

/// The last 300 characters; bytes that continue a UTF-8 character do not count.
std::string_view tail_of(std::string_view text) {
  std::size_t at = text.size();
  for (std::size_t characters = 0; at > 0 && characters < kClip; --at) characters += !continues_character(text[at - 1]);
  return text.substr(at);
}

/// -?[0-9.,]+ at the beginning of `text`; empty if it does not match.
std::string_view numeral_at(std::string_view text) {
  std::size_t end = text.starts_with('-') ? 1 : 0;
  const std::size_t digits = end;
  while (end < text.size() && is_numeral(text[end])) ++end;
  return end > digits ? text.substr(0, end) : std::string_view{};
}

std::string without_commas(std::string_view text) {
  std::string out(text);
  std::erase(out, ',');
  return out;
}

/// Between \( and \), or \[ and \]: the last pair, and where it ends.
struct Formula {
  std::string_view text{};
  std::size_t end = 0;
};
std::optional<Formula> last_formula(std::string_view text) {
  std::optional<Formula> last;
  for (const auto& [open, close] : {std::pair<std::string_view, std::string_view>{"\\(", "\\)"}, {"\\[", "\\]"}}) {
    const auto end = text.rfind(close);
    const auto begin = end == std::string_view::npos || end == 0 ? end : text.rfind(open, end - 1);
    if (end == std::string_view::npos || begin == std::string_view::npos) continue;
    const std::string_view inside = text.substr(begin + open.size(), end - begin - open.size());
    if (!last || end > last->end) last = Formula{inside.substr(inside.rfind('=') + 1), end + close.size()};
  }
  return last;
}

/// The end of \frac{..}{..} at the beginning of `text`; 0 if there is none.
std::size_t fraction_length(std::string_view text) {
  std::size_t at = 0;
  for (const std::string_view command : {"\\frac", "\\dfrac", "\\tfrac"})
    if (text.starts_with(command)) at = command.size();
  for (int argument = 0; at > 0 && argument < 2; ++argument) {
    int depth = 0;
    do {
      if (at >= std::min(text.size(), kLongestFraction)) return 0;
      if (depth == 0 && text[at] != '{') return 0;
      depth += text[at] == '{' ? 1 : text[at] == '}' ? -1 : 0;
      ++at;
    } while (depth > 0);
  }
  return at;
}

/// A number, a fraction of integers or a \frac at the beginning of `text`; its length, 0 if there is none.
std::size_t expression_length(std::string_view text) {
  if (const std::size_t length = fraction_length(text)) return length;
  const bool begins = !text.empty() && (is_digit(text[0]) || (text[0] == '.' && text.size() > 1 && is_digit(text[1])));
  if (!begins) return 0;
  std::size_t end = 0;
  while (end < text.size() && is_numeral(text[end])) ++end;
  while (end > 0 && !is_digit(text[end - 1])) --end;
  std::size_t over = end + 1;
  while (over < text.size() && is_digit(text[over])) ++over;
  if (end < text.size() && text[end] == '/' && over > end + 1) end = over;
  if (end < text.size() && text[end] == '%') ++end;
  return end;
}

/// A minus is a sign where nothing before it could be subtracted from.
bool signs(std::string_view text, std::size_t minus) {
  while (minus > 0 && text[minus - 1] == ' ') --minus;
  if (minus == 0) return true;
  const char before = text[minus - 1];
  return !is_digit(before) && before != ')' && before != '}' && before != ']' && before != '%';
}

std::optional<std::string> last_expression(std::string_view text) {
  std::size_t begin = 0, end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = expression_length(text.substr(at));
    if (length == 0) {
      ++at;
      continue;
    }
    begin = at;
    at = end = at + length;
  }
  if (end == 0) return std::nullopt;
  std::size_t sign = begin;
  if (sign > 0 && text[sign - 1] == '$') --sign;
  const bool negative = sign > 0 && text[sign - 1] == '-' && signs(text, sign - 1);
  return (negative ? "-" : "") + std::string(text.substr(begin, end - begin));
}

bool is_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

bool close(double a, double b) {
  if (a == b) return true;
  const double size = std::max(std::abs(a), std::abs(b));
  const double unit = size < 1 ? std::pow(10.0, std::ceil(std::log10(size))) : 1;
  return std::abs(a - b) <= 5.0000001e-7 * unit;
}

/// Parts between the commas of the outermost level, and the brackets around them.
struct List {
  std::string_view open{}, close{};
  std::vector<std::string_view> parts{};

  bool ordered() const { return open == "(" || open == "["; }
};

/// Split at the commas outside brackets; empty if a bracket closes that was not opened.
std::optional<std::vector<std::string_view>> split_parts(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if ((c == ')' || c == ']' || c == '}') && --depth < 0) return std::nullopt;
    if (c != ',' || depth > 0) continue;
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// "(1,2]", "\\{1,2\\}", "1,2"; brackets that do not belong together, "(1,2),(3,4)", stay with their parts.
List list_of(std::string_view text) {
  List list;
  for (const std::string_view open : {"\\{", "(", "["})
    if (text.starts_with(open)) list.open = open;
  for (const std::string_view close : {"\\}", ")", "]"})
    if (text.ends_with(close)) list.close = close;
  const std::size_t brackets = list.open.size() + list.close.size();
  const bool same_kind = list.open.size() == list.close.size() && brackets > 0 && text.size() >= brackets;
  if (same_kind) {
    auto parts = split_parts(text.substr(list.open.size(), text.size() - brackets));
    if (parts) return {.open = list.open, .close = list.close, .parts = std::move(*parts)};
  }
  auto parts = split_parts(text);
  return parts ? List{.parts = std::move(*parts)} : List{};
}

bool equal_forms(std::string_view a, std::string_view b, int depth);

bool equal_lists(const List& a, const List& b, int depth) {
  const std::size_t size = a.parts.size();
  if (a.open != b.open || a.close != b.close || size != b.parts.size() || size > kLongestList) return false;
  if (a.ordered()) {
    for (std::size_t i = 0; i < size; ++i)
      if (!equal_forms(a.parts[i], b.parts[i], depth)) return false;
    return true;
  }
  std::vector<std::string_view> left = b.parts;
  for (const std::string_view part : a.parts) {
    const auto found =
        std::find_if(left.begin(), left.end(), [&](auto other) { return equal_forms(part, other, depth); });
    if (found == left.end()) return false;
    left.erase(found);
  }
  return true;
}

bool equal_forms(std::string_view a, std::string_view b, int depth) {
  if (a == b) return true;
  if (depth > kDeepestList || (is_integer(a) && is_integer(b))) return false;
  const auto x = maths_value(a), y = maths_value(b);
  if (x && y) return close(*x, *y);
  if (x || y) return false;
  const List as = list_of(a), bs = list_of(b);
  const bool lists = as.parts.size() > 1 || !as.open.empty();
  return lists && equal_lists(as, bs, depth + 1);
}

}  // namespace

std::optional<std::string> marked_answer(std::string_view response) {
  constexpr std::string_view kMark = "#### ";
  const std::string_view tail = tail_of(response);
  for (auto mark = tail.rfind(kMark); mark != std::string_view::npos; mark = tail.rfind(kMark, mark - 1)) {
    const std::string_view numeral = numeral_at(tail.substr(mark + kMark.size()));
    if (!numeral.empty()) return without_commas(numeral);
    if (mark == 0) break;
  }
  return std::nullopt;
}

std::optional<std::string> last_number(std::string_view response) {
  const std::string_view tail = tail_of(response);
  std::optional<std::string> last;
  for (std::size_t at = 0; at < tail.size();) {
    const std::string_view numeral = numeral_at(tail.substr(at));
    if (std::any_of(numeral.begin(), numeral.end(), is_digit)) {
      last = without_commas(numeral);
      last->erase(last->find_last_not_of('.') + 1);
    }
    at += std::max<std::size_t>(1, numeral.size());
  }
  return last;
}

std::optional<std::string> boxed_or_last_expression(std::string_view response) {
  if (const auto boxed = boxed_content(response)) return boxed;
  const auto formula = last_formula(response);
  if (formula && !trim(formula->text).empty() && !last_expression(response.substr(formula->end)))
    return std::string(trim(formula->text));
  return last_expression(response);
}

bool maths_equal(std::string_view prediction, std::string_view gold) {
  const std::string a = normalize_maths(prediction), b = normalize_maths(gold);
  if (a.empty() || b.empty()) return false;
  if (equal_forms(a, b, 0)) return true;
  const bool percent_a = prediction.find('%') != std::string_view::npos,
             percent_b = gold.find('%') != std::string_view::npos;
  const auto x = maths_value(a), y = maths_value(b);
  return percent_a != percent_b && x && y && (percent_a ? close(*x / 100, *y) : close(*x, *y / 100));
}

std::string canonical_maths(std::string_view answer) {
  const std::string normal = normalize_maths(answer);
  const auto value = maths_value(normal);
  if (!value || is_integer(normal) || std::abs(*value) > 1e15) return normal;
  char text[64];
  std::snprintf(text, sizeof text, "%.6f", *value);
  return normalize_maths(text);
}

}  // namespace carnot
