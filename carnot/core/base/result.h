// base/result.h -- a value, or a message that says where, what, and what was expected.
//
// For input from outside: files, recipes, flags, checkpoints, JSON. Never for bugs (base/check.h).
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "carnot/core/base/check.h"

namespace carnot {

/// What is wrong with an input. Several problems found in one pass are on separate lines.
struct Error {
  std::string message;
};

/// Joins problems into one error, one line each. REQUIRES: at least one.
Error join_errors(const std::vector<std::string>& problems);

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: `return value;` is the point
  Result(Error error) : state_(std::move(error)) {}  // NOLINT

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  /// REQUIRES: ok().
  T& value() & {
    CARNOT_CHECK(ok(), error_message());
    return std::get<T>(state_);
  }
  const T& value() const& {
    CARNOT_CHECK(ok(), error_message());
    return std::get<T>(state_);
  }
  T value() && {
    CARNOT_CHECK(ok(), error_message());
    return std::get<T>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  /// REQUIRES: !ok().
  const Error& error() const {
    CARNOT_CHECK(!ok(), "a result with a value has no error");
    return std::get<Error>(state_);
  }

 private:
  std::string error_message() const { return ok() ? std::string() : std::get<Error>(state_).message; }

  std::variant<T, Error> state_;
};

/// The value of a Result that only reports success or failure.
struct Done {};
using Status = Result<Done>;

}  // namespace carnot

/// Evaluates a Result once and, if it has an error, returns that from the surrounding function, which may return any
/// Result or an Error. A value is dropped. One statement:
///   CARNOT_RETURN_IF_ERROR(make_folder(path));
#define CARNOT_RETURN_IF_ERROR(...)                                                                 \
  do {                                                                                              \
    if (const auto& carnot_result_ = (__VA_ARGS__); !carnot_result_) return carnot_result_.error(); \
  } while (false)

/// Evaluates a Result once and returns its error, as above; otherwise moves its value to what `target` declares or
/// names. Several statements: only within braces. `target` has no comma outside of parentheses: write `auto` for a
/// std::map<K, V>.
///   CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
///   CARNOT_ASSIGN_OR_RETURN(member_, parse(text));
#define CARNOT_ASSIGN_OR_RETURN(target, ...) \
  CARNOT_ASSIGN_OR_RETURN_NAMED_(CARNOT_NAME_OF_LINE_(__LINE__), target, __VA_ARGS__)

#define CARNOT_ASSIGN_OR_RETURN_NAMED_(result, target, ...) \
  auto result = (__VA_ARGS__);                              \
  if (!result) return result.error();                       \
  target = std::move(result).value()

#define CARNOT_NAME_OF_LINE_(line) CARNOT_JOIN_NAME_(line)
#define CARNOT_JOIN_NAME_(line) carnot_result_##line
