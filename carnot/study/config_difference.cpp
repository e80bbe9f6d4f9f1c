#include "carnot/study/config_difference.h"

#include <map>
#include <set>

#include "carnot/train/run_folder.h"

namespace carnot {
namespace {

std::map<std::string, std::string> values_of(Recipe& recipe) {
  std::map<std::string, std::string> values;
  const FieldTable table = recipe.table();
  for (const FieldRow& row : table.rows()) values[row.key] = row.value;
  return values;
}

std::string shown(const std::map<std::string, std::string>& values, const std::string& key) {
  const auto found = values.find(key);
  return found == values.end() ? "not set" : found->second;
}

}  // namespace

std::vector<std::string> differing_settings(Recipe& there, Recipe& here, const Ignored& ignored) {
  static const std::set<std::string> kNeverCount{"run_folder", "resume", "threads"};
  const auto left = values_of(there), right = values_of(here);
  std::set<std::string> keys;
  for (const auto& values : {left, right})
    for (const auto& [key, value] : values) keys.insert(key);
  std::vector<std::string> differing;
  for (const std::string& key : keys) {
    if (kNeverCount.contains(key) || ignored(key)) continue;
    const std::string before = shown(left, key), now = shown(right, key);
    // A run writes down what "auto" became.
    if (before != now && now != "auto") differing.push_back(key + ": " + before + " there, " + now + " here");
  }
  return differing;
}

Result<std::vector<std::string>> differing_settings(const std::filesystem::path& run_folder, Recipe& here,
                                                    const Ignored& ignored) {
  const std::filesystem::path config = RunFolder{run_folder}.config();
  if (!std::filesystem::exists(config)) return std::vector<std::string>{};
  auto there = Recipe::load(config, {});
  if (!there) return there.error();
  return differing_settings(*there, here, ignored);
}

}  // namespace carnot
