#include "carnot/chart/page.h"

#include "carnot/base/check.h"
#include "carnot/chart/svg.h"

namespace carnot {
namespace {

constexpr const char* kStyle = R"(
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #dfe3e8; padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p, ul { max-width: 48rem; margin: .5rem 0; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .28rem .7rem .28rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid #eceef1; }
th { color: #555; font-weight: 600; border-bottom: 1px solid #b9c0c8; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
tbody tr:hover { background: #f6f8fa; }
figure { margin: 1rem 0 1.6rem; }
figure svg { max-width: 100%; height: auto; }
figcaption { color: #555; font-size: .88rem; max-width: 48rem; }
pre { background: #f6f8fa; padding: .7rem .9rem; overflow-x: auto; font-size: .84rem; line-height: 1.4; }
)";

std::string element(const std::string& name, std::string_view text) {
  return '<' + name + '>' + escaped(text) + "</" + name + ">\n";
}

}  // namespace

Page& Page::heading(std::string_view text, int level) {
  CARNOT_CHECK(level == 2 || level == 3, "the title is the only heading of level 1");
  body_ += element("h" + std::to_string(level), text);
  return *this;
}

Page& Page::paragraph(std::string_view text) {
  body_ += element("p", text);
  return *this;
}

Page& Page::list(const std::vector<std::string>& items) {
  body_ += "<ul>\n";
  for (const std::string& item : items) body_ += element("li", item);
  body_ += "</ul>\n";
  return *this;
}

Page& Page::table(const Table& table) {
  body_ += "<div class=\"wide\">\n" + carnot::html(table) + "</div>\n";
  return *this;
}

Page& Page::figure(std::string_view svg, std::string_view caption) { return gallery({std::string(svg)}, caption); }

Page& Page::gallery(const std::vector<std::string>& svgs, std::string_view caption) {
  body_ += "<figure>\n";
  for (const std::string& svg : svgs) body_ += svg;
  if (!caption.empty()) body_ += element("figcaption", caption);
  body_ += "</figure>\n";
  return *this;
}

Page& Page::preformatted(std::string_view text) {
  body_ += element("pre", text);
  return *this;
}

std::string Page::html() const {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
         element("title", title_) + "<style>" + kStyle + "</style>\n</head>\n<body>\n" + element("h1", title_) + body_ +
         "</body>\n</html>\n";
}

}  // namespace carnot
