#include "carnot/worlds/command/grade_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "carnot/core/base/excerpt.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/base/statistics.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/data/trajectory.h"

namespace carnot {
namespace {

constexpr std::size_t kExamples = 5;
constexpr std::size_t kShownBytes = 200;
constexpr std::size_t kNamedGroups = 10;

std::string formatted(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// A trajectory that counts under both rewards.
struct Pair {
  const Trajectory* old;
  const Trajectory* now;
  const std::string* response;

  double change() const { return now->leaf().score - old->leaf().score; }
};

struct Side {
  std::vector<double> scores{};
  int successes = 0;
  int groups_with_spread = 0;
};

std::string row(const std::string& title, const std::string& old, const std::string& now) {
  const auto padded = [](const std::string& text) {
    return text + std::string(std::size_t{12} - std::min(std::size_t{12}, text.size()), ' ');
  };
  std::string line = title + std::string(std::size_t{24} - std::min(std::size_t{24}, title.size()), ' ') + padded(old);
  return line + now + "\n";
}

std::string table(const Side& old, const Side& now, std::size_t groups, int both) {
  const auto count = static_cast<double>(old.scores.size());
  const auto share = [&](int successes) { return formatted("%.1f %%", 100 * successes / count); };
  const auto spread = [&](int with) { return std::to_string(with) + " of " + std::to_string(groups); };
  return row("", "old", "new") +
         row("mean score", formatted("%.4g", mean(old.scores)), formatted("%.4g", mean(now.scores))) +
         row("success", share(old.successes), share(now.successes)) +
         row("groups with spread", spread(old.groups_with_spread), spread(now.groups_with_spread)) +
         "\nSuccess: " + std::to_string(both) + " in both, " + std::to_string(old.successes - both) + " only old, " +
         std::to_string(now.successes - both) + " only new, of " + std::to_string(old.scores.size()) +
         " trajectories\n";
}

std::string named(const std::string& title, std::vector<std::string> groups) {
  if (groups.empty()) return "";
  const std::size_t all = groups.size();
  groups.resize(std::min(all, kNamedGroups));
  return title + " (" + std::to_string(all) + "): " + join(groups) + (all > kNamedGroups ? ", ..." : "") + "\n";
}

std::string largest_changes(std::vector<Pair> pairs) {
  std::erase_if(pairs, [](const Pair& pair) { return pair.change() == 0; });
  std::ranges::stable_sort(pairs,
                           [](const Pair& a, const Pair& b) { return std::abs(a.change()) > std::abs(b.change()); });
  if (pairs.empty()) return "No score changes.\n";
  std::string text = std::to_string(pairs.size()) + " scores change; the most:\n";
  for (std::size_t i = 0; i < std::min(pairs.size(), kExamples); ++i) {
    const Leaf& leaf = pairs[i].old->leaf();
    text += "  " + printable_line(leaf.trajectory_id) + ": " + formatted("%.4g", leaf.score) + " -> " +
            formatted("%.4g", pairs[i].now->leaf().score) + "  " +
            printable_line(end_of(*pairs[i].response, kShownBytes)) + "\n";
  }
  return text;
}

}  // namespace

std::string grade_report(std::span<const Group> old_groups, std::span<const Group> new_groups,
                         std::span<const std::string> responses) {
  const std::vector<Trajectory> old = trajectories(old_groups), now = trajectories(new_groups);
  Side before, after;
  std::vector<Pair> pairs;
  std::vector<std::string> gain, lose;
  int both = 0;
  for (std::size_t begin = 0, end = 0; begin < old.size(); begin = end) {
    std::vector<double> old_rewards, new_rewards;
    for (end = begin; end < old.size() && old[end].group == old[begin].group; ++end) {
      if (!old[end].leaf().valid() || !now[end].leaf().valid()) continue;
      pairs.push_back({.old = &old[end], .now = &now[end], .response = &responses[end]});
      old_rewards.push_back(old[end].penalised_score());
      new_rewards.push_back(now[end].penalised_score());
      both += old[end].leaf().success && now[end].leaf().success ? 1 : 0;
    }
    const bool had = !all_equal(old_rewards), has = !all_equal(new_rewards);
    before.groups_with_spread += had ? 1 : 0;
    after.groups_with_spread += has ? 1 : 0;
    if (had != has) (has ? gain : lose).push_back(printable_line(old[begin].group->uid));
  }
  if (pairs.empty()) return "No trajectory has both scores.\n";
  for (const Pair& pair : pairs) {
    before.scores.push_back(pair.old->leaf().score);
    after.scores.push_back(pair.now->leaf().score);
    before.successes += pair.old->leaf().success ? 1 : 0;
    after.successes += pair.now->leaf().success ? 1 : 0;
  }
  std::string report = table(before, after, old_groups.size(), both);
  if (pairs.size() < old.size())
    report +=
        std::to_string(old.size() - pairs.size()) + " trajectories lack one of the scores (infrastructure failures)\n";
  report += named("Groups that gain spread", gain) + named("Groups that lose spread", lose);
  return report + largest_changes(std::move(pairs));
}

}  // namespace carnot
