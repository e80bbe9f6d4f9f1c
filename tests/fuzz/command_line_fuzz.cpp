// Any lines are the arguments of a request, or a message.
#include <cstddef>
#include <cstdint>

#include "carnot/base/check.h"
#include "carnot/base/file.h"
#include "carnot/cli/command_line.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> arguments;
  for (const std::string_view line : carnot::split_lines({reinterpret_cast<const char*>(data), size}))
    arguments.emplace_back(line.substr(0, line.find('\0')));
  const auto request = carnot::parse_command_line(arguments);
  CARNOT_CHECK(request.ok() || !request.error().message.empty(), "an error says what is wrong");
  return 0;
}
