#include "carnot/view/lists.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace carnot {
namespace {

bool all_alike(std::span<const OrderedJson> values) {
  return std::ranges::all_of(values, [&](const OrderedJson& value) { return value == values.front(); });
}

}  // namespace

OrderedJson rounded(double value) {
  if (!std::isfinite(value)) return OrderedJson();
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.5g", value);
  return std::strtod(text.data(), nullptr);
}

void add_list(OrderedJson& to, std::string_view name, const std::vector<OrderedJson>& values) {
  if (std::ranges::all_of(values, [](const OrderedJson& value) { return value.is_null(); })) return;
  to[std::string(name)] = all_alike(values) ? values.front() : OrderedJson(values);
}

void add_sampled(OrderedJson& to, std::string_view name, const Trajectory& trajectory, std::span<const double> values) {
  if (values.size() != static_cast<std::size_t>(trajectory.num_tokens())) return;
  std::vector<OrderedJson> all, by_turn;
  bool one_per_turn = true;
  for (int k = 0; k < trajectory.num_turns(); ++k) {
    const std::size_t begin = all.size();
    for (int t = trajectory.sampled_begin(k); t < trajectory.sampled_end(k); ++t)
      all.push_back(rounded(values[static_cast<std::size_t>(t)]));
    const auto own = std::span(all).subspan(begin);
    one_per_turn = one_per_turn && all_alike(own);
    by_turn.push_back(own.empty() ? OrderedJson() : own.front());
  }
  const bool brief = one_per_turn && !all_alike(all);
  if (brief)
    to[std::string(name)] = OrderedJson{{"turns", by_turn}};
  else
    add_list(to, name, all);
}

}  // namespace carnot
