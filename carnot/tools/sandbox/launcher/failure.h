// tools/sandbox/launcher/failure.h -- a step of setting up the sandbox that the system refused.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace carnot::launcher {

class SetupFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws what was tried and the system's reason (errno).
[[noreturn]] inline void refuse(const std::string& what) { throw SetupFailure(what + ": " + std::strerror(errno)); }

inline void need(bool done, const char* what) {
  if (!done) refuse(what);
}
inline void need(bool done, const std::string& what) {
  if (!done) refuse(what);
}

}  // namespace carnot::launcher
