#include "carnot/cli/console.h"

#include <ostream>

#include "carnot/base/file.h"

namespace carnot {

Exit report(const Console& console, const Error& error, Exit exit) {
  for (const std::string_view line : split_lines(error.message)) console.err << "carnot: " << line << '\n';
  console.err << std::flush;
  return exit;
}

}  // namespace carnot
