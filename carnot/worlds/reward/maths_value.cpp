#include "carnot/worlds/reward/maths_value.h"

#include <charconv>
#include <cmath>
#include <numbers>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr int kDeepest = 40;
constexpr std::size_t kLongest = 1000;

/// Recursive descent. A failure anywhere makes the whole fail.
///   sum      = product (('+' | '-') product)*
///   product  = signed (('*' | '/') signed | power)*      a power after a power multiplies; it begins with no digit
///   signed   = '-' signed | power
///   power    = primary ('^' argument)?
class Evaluator {
 public:
  explicit Evaluator(std::string_view text) : text_(text) {}

  std::optional<double> evaluate() {
    const double value = sum();
    if (failed_ || !text_.empty() || !std::isfinite(value)) return std::nullopt;
    return value;
  }

 private:
  double fail() {
    failed_ = true;
    text_ = {};
    return 0;
  }

  bool take(std::string_view word) {
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }

  double sum() {
    if (++depth_ > kDeepest) return fail();
    double value = product();
    while (!failed_) {
      if (take("+"))
        value += product();
      else if (take("-"))
        value -= product();
      else
        break;
    }
    --depth_;
    return value;
  }

  double product() {
    double value = signed_power();
    while (!failed_ && !text_.empty()) {
      if (take("*"))
        value *= signed_power();
      else if (take("/"))
        value /= signed_power();
      else if (text_.front() == '(' || text_.front() == '\\')
        value *= power();
      else
        break;
    }
    return value;
  }

  double signed_power() {
    bool negative = false;
    while (take("-")) negative = !negative;
    return negative ? -power() : power();
  }

  double power() {
    const double base = primary();
    if (failed_ || !take("^")) return base;
    return std::pow(base, text_.starts_with('{') ? group('{', '}') : single());
  }

  /// An exponent without braces: one digit, or a minus and a number, as plain text writes it.
  double single() {
    if (text_.starts_with('(')) return group('(', ')');
    const bool negative = take("-");
    if (text_.empty() || !is_digit(text_.front())) return fail();
    const double value = number();
    return negative ? -value : value;
  }

  double primary() {
    if (text_.empty()) return fail();
    if (is_digit(text_.front())) return mixed_number();
    if (text_.front() == '(') return group('(', ')');
    if (text_.front() == '{') return group('{', '}');
    if (take("\\frac")) return fraction();
    if (take("\\sqrt")) return root();
    if (take("\\pi")) {
      take(" ");
      return std::numbers::pi;
    }
    return fail();
  }

  double group(char open, char close) {
    if (!take(std::string_view(&open, 1))) return fail();
    const double value = sum();
    return take(std::string_view(&close, 1)) ? value : fail();
  }

  double fraction() {
    const double over = group('{', '}');
    if (failed_) return 0;
    return over / group('{', '}');
  }

  double root() {
    double degree = 2;
    if (text_.starts_with('[')) degree = group('[', ']');
    if (failed_) return 0;
    const double radicand = group('{', '}');
    return degree == 2 ? std::sqrt(radicand) : std::pow(radicand, 1 / degree);
  }

  /// an integer right before a fraction of integers counts its parts together: 1\frac{1}{2}.
  double mixed_number() {
    const std::string_view before = text_;
    const double value = number();
    const std::string_view digits = before.substr(0, before.size() - text_.size());
    if (failed_ || digits.find_first_not_of("0123456789") != std::string_view::npos) return value;
    if (!text_.starts_with("\\frac{") || text_.size() < 7 || !is_digit(text_[6])) return value;
    take("\\frac");
    return value + fraction();
  }

  double number() {
    double value = 0;
    const char* begin = text_.data();
    const auto [end, error] = std::from_chars(begin, begin + text_.size(), value);
    if (error != std::errc{}) return fail();
    text_.remove_prefix(end - begin);
    return value;
  }

  std::string_view text_;
  int depth_ = 0;
  bool failed_ = false;
};

}  // namespace

std::optional<double> maths_value(std::string_view normal) {
  if (normal.empty() || normal.size() > kLongest) return std::nullopt;
  return Evaluator(normal).evaluate();
}

}  // namespace carnot
