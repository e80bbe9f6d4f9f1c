#include "testing/well_formed.h"

#include <regex>
#include <set>
#include <vector>

namespace carnot::testing {
namespace {

bool is_escaped(const std::string& text) {
  static const std::regex kBareAmpersand("&(?!(amp|lt|gt|quot|#39);)");
  return !std::regex_search(text, kBareAmpersand) && text.find('>') == std::string::npos;
}

/// Of `name="value"` pairs.
std::string problem_with_attributes(std::string rest) {
  static const std::regex kAttribute("^\\s+([a-zA-Z][a-zA-Z0-9-]*)=\"([^\"<]*)\"");
  std::set<std::string> names;
  std::smatch match;
  while (std::regex_search(rest, match, kAttribute)) {
    if (!names.insert(match[1]).second) return "attribute " + match[1].str() + " twice";
    if (!is_escaped(match[2])) return "unescaped value " + match[2].str();
    rest = match.suffix();
  }
  return rest.find_first_not_of(" \n") == std::string::npos ? "" : "attributes: " + rest;
}

std::string name_of(const std::string& tag) { return tag.substr(0, tag.find_first_of(" \n")); }

}  // namespace

std::string problem_with_markup(std::string_view markup) {
  const std::string text(markup);
  std::vector<std::string> open;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = text.find('<', at);
    if (!is_escaped(text.substr(at, begin - at))) return "unescaped text: " + text.substr(at, begin - at);
    if (begin == std::string::npos) break;
    const std::size_t end = text.find('>', begin);
    if (end == std::string::npos) return "a tag without its end";
    std::string tag = text.substr(begin + 1, end - begin - 1);
    at = end + 1;
    if (tag == "!DOCTYPE html" || tag.starts_with("meta ")) continue;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1)) return "closes " + tag + " where it is not open";
      open.pop_back();
      continue;
    }
    const bool is_closed = tag.ends_with("/");
    if (is_closed) tag.pop_back();
    const std::string name = name_of(tag);
    if (const std::string problem = problem_with_attributes(tag.substr(name.size())); !problem.empty())
      return name + ": " + problem;
    if (!is_closed) open.push_back(name);
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

}  // namespace carnot::testing
