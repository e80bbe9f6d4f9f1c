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
