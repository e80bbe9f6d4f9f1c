#include "carnot/tools/calculator/expression.h"

#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <vector>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::size_t kLongest = 10'000;
constexpr int kDeepest = 100;

struct Function {
  std::string_view name;
  double (*value)(double);
};
constexpr std::array<Function, 15> kFunctions{{
    {"abs", [](double x) { return std::abs(x); }},
    {"ceil", [](double x) { return std::ceil(x); }},
    {"cos", [](double x) { return std::cos(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"floor", [](double x) { return std::floor(x); }},
    {"ln", [](double x) { return std::log(x); }},
    {"log", [](double x) { return std::log(x); }},
    {"log10", [](double x) { return std::log10(x); }},
    {"log2", [](double x) { return std::log2(x); }},
    {"round", [](double x) { return std::nearbyint(x); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
    {"tan", [](double x) { return std::tan(x); }},
    {"cbrt", [](double x) { return std::cbrt(x); }},
    {"atan", [](double x) { return std::atan(x); }},
}};

/// Recursive descent; the first problem ends it. Grammar of Python: unary minus binds looser than **.
class Calculation {
 public:
  explicit Calculation(std::string_view text) : text_(text) {}

  Result<double> run() {
    const double value = sum();
    skip_blanks();
    if (problem_.empty() && at_ < text_.size()) expected("an operator or the end");
    if (!problem_.empty()) return Error{problem_};
    if (!std::isfinite(value)) return Error{"the value is not a finite number"};
    return value;
  }

 private:
  double sum() {
    double value = product();
    while (problem_.empty()) {
      if (take("+"))
        value += product();
      else if (take("-"))
        value -= product();
      else
        break;
    }
    return value;
  }

  double product() {
    double value = signed_power();
    while (problem_.empty()) {
      if (take("//"))
        value = std::floor(value / divisor());
      else if (take("/"))
        value /= divisor();
      else if (take("%"))
        value = remainder(value, divisor());
      else if (take_times())
        value *= signed_power();
      else
        break;
    }
    return value;
  }

  double divisor() {
    const double value = signed_power();
    if (value == 0 && problem_.empty()) problem_ = "division by zero";
    return value;
  }

  /// As Python's %: the sign is the divisor's.
  static double remainder(double value, double by) {
    const double rest = std::fmod(value, by);
    return rest != 0 && (rest < 0) != (by < 0) ? rest + by : rest;
  }

  double signed_power() {
    if (++depth_ > kDeepest) problem_ = "more than " + std::to_string(kDeepest) + " levels";
    double value = 0;
    if (problem_.empty()) value = take("-") ? -signed_power() : take("+") ? signed_power() : power();
    --depth_;
    return value;
  }

  double power() {
    const double base = atom();
    if (!problem_.empty() || !(take("**") || take("^"))) return base;
    return std::pow(base, signed_power());
  }

  double atom() {
    skip_blanks();
    if (at_ == text_.size()) return expected("a number");
    if (take("(")) return bracketed();
    if (is_digit(text_[at_]) || text_[at_] == '.') return number();
    if (is_letter(text_[at_])) return named();
    return expected("a number");
  }

  double bracketed() {
    const double value = sum();
    if (problem_.empty() && !take(")")) return expected("')'");
    return value;
  }

  double number() {
    std::string digits;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      const bool separates = c == '_' && !digits.empty() && is_digit(digits.back());
      const bool is_exponent = (c == 'e' || c == 'E') && at_ + 1 < text_.size() && !is_letter(text_[at_ + 1]);
      const bool is_sign = (c == '-' || c == '+') && !digits.empty() && (digits.back() == 'e' || digits.back() == 'E');
      if (!is_digit(c) && c != '.' && !separates && !is_exponent && !is_sign) break;
      if (c != '_') digits += c;
    }
    double value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (failure == std::errc::result_out_of_range) return fail("\"" + digits + "\" is out of range");
    if (failure != std::errc{} || end != digits.data() + digits.size()) return fail("\"" + digits + "\" is no number");
    return value;
  }

  double named() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name == "pi") return std::numbers::pi;
    if (name == "e") return std::numbers::e;
    for (const Function& function : kFunctions)
      if (function.name == name)
        return take("(") ? function.value(bracketed()) : expected("'(' after " + std::string(name));
    return fail("there is no \"" + std::string(name) + "\"; there is: pi, e, " + calculator_functions());
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(std::string_view operation) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(operation)) return false;
    at_ += operation.size();
    return true;
  }
  bool take_times() {
    skip_blanks();
    return !text_.substr(at_).starts_with("**") && take("*");
  }
  double fail(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
    return 0;
  }
  double expected(const std::string& what) {
    const std::string found =
        at_ < text_.size() ? "\"" + std::string(text_.substr(at_, 1)) + "\" at character " + std::to_string(at_ + 1)
                           : "the end";
    return fail("expected " + what + ", found " + found);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string problem_{};
};

}  // namespace

Result<double> calculate(std::string_view expression) {
  if (expression.size() > kLongest)
    return Error{"the expression is longer than " + std::to_string(kLongest) + " bytes"};
  return Calculation(expression).run();
}

std::string calculator_functions() {
  std::vector<std::string> names;
  for (const Function& function : kFunctions) names.emplace_back(function.name);
  return join(names);
}

std::string exact_text(double value) {
  std::array<char, 40> digits{};
  constexpr double kExact = 9007199254740992.0;
  const bool is_whole = value == std::floor(value) && std::abs(value) <= kExact;
  const auto end = is_whole ? std::to_chars(digits.begin(), digits.end(), static_cast<long long>(value)).ptr
                            : std::to_chars(digits.begin(), digits.end(), value).ptr;
  return {digits.begin(), end};
}

}  // namespace carnot
