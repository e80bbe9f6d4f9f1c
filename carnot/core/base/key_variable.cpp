#include "carnot/core/base/key_variable.h"

#include <algorithm>
#include <cstdlib>

#include "carnot/core/base/strings.h"

namespace carnot {

Result<std::string> key_of_variable(const std::string& name, const std::string& where) {
  if (name.empty()) return std::string();
  const char* value = std::getenv(name.c_str());
  if (value == nullptr)
    return Error{where +
                 ": no such environment variable; expected the NAME of one that holds the key, never the key itself"};
  const std::string key(trim(value));
  if (key.empty()) return Error{where + ": the environment variable is set but empty; expected one that holds the key"};
  if (std::any_of(key.begin(), key.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
    return Error{where + ": the variable's value has control characters; expected a key"};
  return key;
}

}  // namespace carnot
