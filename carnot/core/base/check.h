// base/check.h -- checks for bugs: they print both expressions and both values and throw.
//
// For programming errors only. Bad input is a Result (base/result.h), the world's failures are data
// (data/tree.h, Outcome). Checks stay on in release builds; nothing but main catches CheckError.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace carnot {

/// Thrown by a failed check. The message holds file, line, expression and values.
class CheckError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

[[noreturn]] void check_failed(const char* file, int line, const std::string& what);
[[noreturn]] void check_failed(const char* file, int line, const char* condition, const std::string& message);

template <class A, class B>
std::string both_values(const char* expression, const A& a, const B& b) {
  std::ostringstream out;
  out << expression << " (" << a << " and " << b << ")";
  return out.str();
}

}  // namespace detail
}  // namespace carnot

#define CARNOT_CHECK(condition, message)                                                         \
  do {                                                                                           \
    if (!(condition)) ::carnot::detail::check_failed(__FILE__, __LINE__, #condition, (message)); \
  } while (false)

#define CARNOT_CHECK_COMPARE_(a, op, b)                                                                       \
  do {                                                                                                        \
    const auto& carnot_a_ = (a);                                                                              \
    const auto& carnot_b_ = (b);                                                                              \
    if (!(carnot_a_ op carnot_b_))                                                                            \
      ::carnot::detail::check_failed(__FILE__, __LINE__,                                                      \
                                     ::carnot::detail::both_values(#a " " #op " " #b, carnot_a_, carnot_b_)); \
  } while (false)

#define CARNOT_CHECK_EQ(a, b) CARNOT_CHECK_COMPARE_(a, ==, b)
#define CARNOT_CHECK_NE(a, b) CARNOT_CHECK_COMPARE_(a, !=, b)
#define CARNOT_CHECK_LT(a, b) CARNOT_CHECK_COMPARE_(a, <, b)
#define CARNOT_CHECK_LE(a, b) CARNOT_CHECK_COMPARE_(a, <=, b)
#define CARNOT_CHECK_GT(a, b) CARNOT_CHECK_COMPARE_(a, >, b)
#define CARNOT_CHECK_GE(a, b) CARNOT_CHECK_COMPARE_(a, >=, b)
