#include "carnot/view/chart/page.h"

namespace carnot {

// Style and script, put into the library when it is configured (CMakeLists.txt).
extern const std::string_view kPageStyle, kPageScript;

namespace {

/// JSON that no HTML parser sees the end of a script in, nor the beginning of a comment.
std::string inside_a_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

}  // namespace

std::string html_page(const HtmlPage& page) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
      "form-action 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
  if (page.served) html += "; connect-src 'self'";
  html +=
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Carnot</title>\n<style>\n";
  html.append(page.style)
      .append("</style>\n</head>\n<body")
      .append(page.served ? " data-served" : "")
      .append(">\n<script type=\"application/json\" id=\"");
  html.append(page.data_id).append("\">\n").append(inside_a_script(page.data)).append("</script>\n<script>\n");
  html.append(page.script).append("</script>\n");
  for (const std::string& json : page.more)
    html.append("<script type=\"application/json\" class=\"more\">")
        .append(inside_a_script(json))
        .append("</script>\n");
  return html.append("</body>\n</html>\n");
}

std::string page_html(std::string_view report) {
  return html_page({.style = kPageStyle, .data_id = "report", .data = report, .script = kPageScript});
}

}  // namespace carnot
