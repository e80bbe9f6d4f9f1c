// Whatever a launcher's variables hold, a process is a rank within its group, or the variables are refused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "carnot/core/rank/launcher.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(launcher_variables) {
  // Lines NAME=value.
  const std::string text(reinterpret_cast<const char*>(data), size);
  carnot::Variables variables;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (const std::size_t equals = line.find('='); equals != line.npos)
      variables[line.substr(0, equals)] = line.substr(equals + 1);
    begin = end + 1;
  }
  const auto setting = carnot::rank_setting(variables);
  if (setting && (setting->rank < 0 || setting->rank >= setting->size)) std::abort();
  if (setting && setting->size > 1 && setting->address.empty()) std::abort();
  return 0;
}
