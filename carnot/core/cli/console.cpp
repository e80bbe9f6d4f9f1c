#include "carnot/core/cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <ostream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/printable.h"

namespace carnot {

int terminal_columns() {
  struct winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

Exit report(const Console& console, const Error& error, Exit exit) {
  const std::string message = printable_message(error.message);
  for (const std::string_view line : split_lines(message)) console.err << "carnot: " << line << '\n';
  console.err << std::flush;
  return exit;
}

void warn(const Console& console, std::span<const std::string> warnings) {
  for (const std::string& warning : warnings) console.err << "carnot: warning: " << printable_message(warning) << '\n';
  console.err << std::flush;
}

Exit ended(const Status& status, const Console& console) {
  return status ? Exit::Success : report(console, status.error());
}

Exit print(const Result<std::string>& text, const Console& console) {
  if (!text) return report(console, text.error());
  console.out << *text << std::flush;
  return Exit::Success;
}

Exit write_output(const std::string& text, const std::filesystem::path& output, const Console& console) {
  if (!output.empty()) return ended(write_file_atomically(output, text), console);
  return print(text, console);
}

}  // namespace carnot
