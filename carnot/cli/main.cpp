// The program: command line in, exit status out. Everything else is in the rooms.
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <iostream>

#include "carnot/base/file.h"
#include "carnot/cli/commands.h"
#include "carnot/cli/run_commands.h"

namespace carnot {
namespace {

/// The reader of our output has left, as in `carnot list | head -1`.
bool reader_left() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

Exit run_program(const std::vector<std::string>& arguments, const Console& console) {
  const auto request = parse_command_line(arguments);
  if (!request) return report(console, request.error(), Exit::Usage);
  return std::visit([&](const auto& command) { return execute(command, console); }, *request);
}

Exit guarded(const std::vector<std::string>& arguments, const Console& console) {
  Exit exit = Exit::Success;
  try {
    exit = run_program(arguments, console);
  } catch (const std::exception& error) {
    const std::string what = error.what();  // LibTorch puts a stack trace below the first line
    return report(console, {"internal error: " + what.substr(0, what.find('\n'))}, Exit::Internal);
  }
  console.out << std::flush;
  if (console.out) return exit;
  if (reader_left()) return Exit::Success;
  return exit == Exit::Success ? report(console, {"standard output cannot be written"}) : exit;
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  std::signal(SIGPIPE, SIG_IGN);
  std::ios::sync_with_stdio(false);
  const std::vector<std::string> arguments(values + 1, values + count);
  const carnot::Console console{
      .in = std::cin, .out = std::cout, .err = std::cerr, .terminal = isatty(STDOUT_FILENO) == 1};
  return static_cast<int>(carnot::guarded(arguments, console));
}
