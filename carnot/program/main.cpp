// The program: command line in, exit status out. Everything else is in the rooms.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <system_error>

#include "carnot/core/base/file.h"
#include "carnot/program/commands.h"

namespace carnot {
namespace {

/// Descriptors 0 to 2 that the caller closed are taken, so that no file of a run gets such a number and with it what is
/// meant for the console. Each is opened the wrong way round: to read or write it fails, as it would if it were closed.
bool reserve_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    const int opened = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != descriptor) return false;
  }
  return true;
}

/// The reader of our output has left, as in `carnot list | head -1`.
bool reader_left() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

Exit run_program(const std::vector<std::string>& arguments, const Console& console) {
  const auto action = parse_command_line(carnot_commands(), arguments);
  if (!action) return report(console, action.error(), Exit::Usage);
  return (*action)(console);
}

Exit guarded(const std::vector<std::string>& arguments, const Console& console) {
  Exit exit = Exit::Success;
  make_offers();
  try {
    exit = run_program(arguments, console);
  } catch (const std::bad_alloc&) {
    throw;                                    // main says so
  } catch (const std::system_error& error) {  // threads that cannot start
    return report(console, {error.what()});
  } catch (const std::exception& error) {
    const std::string what = error.what();  // LibTorch puts a stack trace below the first line
    return report(console, {"internal error: " + what.substr(0, what.find('\n'))}, Exit::Internal);
  }
  console.out << std::flush;
  if (console.out) return exit;
  if (reader_left()) return Exit::Success;
  return exit == Exit::Success ? report(console, {"standard output cannot be written"}) : exit;
}

/// Says so without asking for memory.
Exit out_of_memory() {
  constexpr std::string_view kMessage = "carnot: out of memory; `carnot train --dry-run` says how much a run takes\n";
  (void)!::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  return Exit::Failure;
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  if (!carnot::reserve_standard_descriptors()) return static_cast<int>(carnot::Exit::Failure);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    std::ios::sync_with_stdio(false);
    const std::vector<std::string> arguments(values + 1, values + count);
    const carnot::Console console{
        .in = std::cin, .out = std::cout, .err = std::cerr, .terminal = isatty(STDOUT_FILENO) == 1};
    return static_cast<int>(carnot::guarded(arguments, console));
  } catch (const std::bad_alloc&) {
    return static_cast<int>(carnot::out_of_memory());
  }
}
