#include "carnot/core/base/check.h"

namespace carnot::detail {

void check_failed(const char* file, int line, const std::string& what) {
  std::ostringstream out;
  out << file << ":" << line << ": check failed: " << what;
  throw CheckError(out.str());
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  check_failed(file, line, std::string(condition) + ": " + message);
}

}  // namespace carnot::detail
