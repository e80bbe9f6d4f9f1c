#include "carnot/chart/page.h"

#include "carnot/chart/page_files.h"

namespace carnot {
namespace {

/// JSON that no HTML parser sees the end of a script in, nor the beginning of a comment.
std::string inside_a_script(std::string_view json) {
  std::string out;
  for (const char c : json) out += c == '<' ? "\\u003c" : std::string(1, c);
  return out;
}

}  // namespace

std::string page_html(std::string_view report) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Carnot</title>\n<style>\n";
  html.append(kPageStyle).append("</style>\n</head>\n<body>\n<script type=\"application/json\" id=\"report\">\n");
  html.append(inside_a_script(report)).append("</script>\n<script>\n");
  return html.append(kPageScript).append("</script>\n</body>\n</html>\n");
}

}  // namespace carnot
