// Any lines are the arguments of a command, or a message; nothing is run. The commands without LibTorch, and one that
// takes arguments of every kind (tests/cli/commands_test.cpp reads the corpus with the program's own table).
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "carnot/core/cli/command_line.h"
#include "carnot/core/cli/entries.h"
#include "testing/every_option.h"
#include "tests/fuzz/target.h"

namespace {

const carnot::CommandTable& table() {
  static const carnot::CommandTable all{
      .commands = {carnot::testing::every_option_entry("train"), carnot::inspect_entry(), carnot::credit_entry({}),
                   carnot::list_entry({}), carnot::environment_entry(), carnot::tokenize_entry(), carnot::help_entry()},
      .version = "0"};
  return all;
}

}  // namespace

CARNOT_FUZZ_TARGET(command_line) {
  std::vector<std::string> arguments;
  for (const std::string_view line : carnot::split_lines({reinterpret_cast<const char*>(data), size}))
    arguments.emplace_back(line.substr(0, line.find('\0')));
  const auto action = carnot::parse_command_line(table(), arguments);
  CARNOT_CHECK(action.ok() || !action.error().message.empty(), "an error says what is wrong");
  return 0;
}
