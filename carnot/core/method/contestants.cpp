#include "carnot/core/method/contestants.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/method/method.h"

namespace carnot {
namespace {

constexpr std::size_t kLongestFolder = 120;
constexpr std::string_view kBlanks = " \t\n";

/// The parts of `text` between separators that are outside of brackets and quotation marks; empty if those do not
/// match.
std::optional<std::vector<std::string_view>> split_outside(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[') {
      ++depth;
    } else if (c == ']' && --depth < 0) {
      return std::nullopt;
    } else if (depth == 0 && separators.find(c) != std::string_view::npos) {
      parts.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (depth != 0 || quote != 0) return std::nullopt;
  parts.push_back(text.substr(begin));
  return parts;
}

Error problem_with(std::string_view entry, const std::string& what) {
  return {"methods: \"" + std::string(entry) + "\": " + what};
}

/// "grpo+aem", "grpo  + aem" -> "grpo + aem".
std::string plain_composition(std::string_view text) {
  std::string out;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find('+', at), text.size());
    if (!out.empty()) out += " + ";
    out += trim(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

Result<Contestant> parse_contestant(std::string_view entry) {
  const std::size_t bracket = entry.find('[');
  Contestant contestant{.method = plain_composition(entry.substr(0, bracket))};
  if (contestant.method.empty()) return problem_with(entry, "expected a method, as in \"grpo, grpo + aem\"");
  if (bracket == std::string_view::npos) return contestant;
  const std::string_view settings = trim(entry.substr(bracket));
  if (!settings.ends_with(']')) return problem_with(entry, "expected nothing behind the settings' closing bracket");
  const auto parts = split_outside(settings.substr(1, settings.size() - 2), kBlanks);
  if (!parts) return problem_with(entry, "brackets or quotation marks do not match");
  for (const std::string_view part : *parts) {
    if (part.empty()) continue;
    if (part.find('=') == std::string_view::npos)
      return problem_with(entry, "expected key=value in brackets, found \"" + std::string(part) + "\"");
    contestant.settings.emplace_back(part);
  }
  return contestant;
}

void add_all(std::vector<Contestant>& contestants) {
  for (const MethodEntry& entry : methods()) {
    if (!entry.in_all) continue;
    contestants.push_back({.method = (entry.is_base() ? "" : "grpo + ") + std::string(entry.name), .from_all = true});
  }
}

}  // namespace

std::string Contestant::name() const {
  if (settings.empty()) return method;
  std::string inside;
  for (const std::string& setting : settings) inside += (inside.empty() ? "" : " ") + setting;
  return method + " [" + inside + "]";
}

std::string Contestant::folder() const {
  std::string folder;
  for (const char c : method)
    if (c != ' ') folder += c;
  for (const std::string& setting : settings) folder += "," + setting;
  bool is_plain = folder.size() <= kLongestFolder;
  for (char& c : folder) {
    const bool is_safe = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                         std::string_view("._-+=,").find(c) != std::string_view::npos;
    if (is_safe) continue;
    c = '_';
    is_plain = false;
  }
  if (is_plain) return folder;
  return folder.substr(0, kLongestFolder) + "-" + sha256_hex(name()).substr(0, 8);
}

Result<std::vector<Contestant>> parse_contestants(std::string_view text) {
  const auto entries = split_outside(text, ",");
  if (!entries) return problem_with(text, "brackets or quotation marks do not match");
  std::vector<Contestant> contestants;
  std::vector<std::string> problems;
  for (const std::string_view written : *entries) {
    const std::string_view entry = trim(written);
    if (entry == "all") {
      add_all(contestants);
      continue;
    }
    const auto contestant = parse_contestant(entry);
    if (contestant) {
      contestants.push_back(*contestant);
    } else {
      problems.push_back(contestant.error().message);
    }
  }
  std::set<std::string> names;
  for (const Contestant& contestant : contestants)
    if (!names.insert(contestant.name()).second)
      problems.push_back(problem_with(contestant.name(), "is listed twice").message);
  if (!problems.empty()) return join_errors(problems);
  return contestants;
}

}  // namespace carnot
