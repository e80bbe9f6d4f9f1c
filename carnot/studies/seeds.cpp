#include "carnot/studies/seeds.h"

#include <charconv>
#include <optional>
#include <set>
#include <string>

#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::int64_t kMostSeeds = 1000;

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

}  // namespace

Result<std::vector<std::int64_t>> parse_seeds(std::string_view text) {
  std::set<std::int64_t> seeds;
  const Error error{"seeds: expected integers and ranges such as 0-4 or 0,1,2, found \"" + std::string(text) + "\""};
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view part = trim(text.substr(at, end - at));
    const std::size_t dash = part.find('-');
    const auto first = whole_number(trim(part.substr(0, dash)));
    const auto last = dash == std::string_view::npos ? first : whole_number(trim(part.substr(dash + 1)));
    if (!first || !last || *last < *first) return error;
    if (*last - *first >= kMostSeeds)
      return Error{"seeds: at most " + std::to_string(kMostSeeds) + ", found \"" + std::string(part) + "\""};
    for (std::int64_t seed = *first; seed <= *last; ++seed) seeds.insert(seed);
    at = end + 1;
  }
  return std::vector<std::int64_t>(seeds.begin(), seeds.end());
}

}  // namespace carnot
