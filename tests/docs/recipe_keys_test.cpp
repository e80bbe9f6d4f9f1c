// The tables of recipe keys: every key of every section, environment and method, as `carnot help keys` prints it.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>

#include "carnot/core/base/file.h"
#include "page.h"
#include "testing/paths.h"

namespace carnot {
namespace {

using nlohmann::json;
using testing::expect_block;
using testing::matches;
using testing::page_text;
using testing::plain_cell;
using testing::program_says;
using testing::table_heading;
using testing::table_row;

constexpr const char* kPage = "docs/recipe_keys.md";

struct Key {
  std::string name{}, value{}, accepts{}, help{};
};

/// The keys of a help text: "  name=value  (accepts)", with the help indented below.
std::vector<Key> keys_of(const std::string& text) {
  static const std::regex kKey(R"(  ([a-z][a-z0-9_.]*)=(.*)  \((.*)\))");
  std::vector<Key> keys;
  for (const std::string_view view : split_lines(text)) {
    const std::string line(view);
    std::smatch match;
    if (std::regex_match(line, match, kKey)) {
      keys.push_back({.name = match[1], .value = match[2], .accepts = match[3]});
    } else if (line.starts_with("      ") && !keys.empty()) {
      std::string& help = keys.back().help;
      help += (help.empty() ? "" : " ") + line.substr(6);
    }
  }
  return keys;
}

std::string table_of(const std::vector<Key>& keys) {
  std::string table = table_heading({"key", "default", "accepts", "meaning"});
  for (const Key& key : keys)
    table += table_row({"`" + key.name + "`", "`" + key.value + "`", key.accepts, plain_cell(key.help)});
  return table;
}

/// "train" of train.steps; "run" of a key without a section.
std::string section_of(const std::string& key) {
  const std::size_t dot = key.find('.');
  return dot == std::string::npos ? "run" : key.substr(0, dot);
}

TEST(RecipeKeys, MatchThePagesTables) {
  std::map<std::string, std::vector<Key>> sections;
  for (const Key& key : keys_of(program_says({"help", "keys"}))) {
    const std::string section = section_of(key.name);
    const bool elsewhere = (section == "env" || section == "method") && key.name != section + ".name";
    if (!elsewhere) sections[section].push_back(key);
  }
  EXPECT_GT(sections.size(), 10u);
  for (const auto& [name, keys] : sections) expect_block(kPage, "keys " + name, table_of(keys));
}

TEST(RecipeKeys, OfMethodsMatchThePagesTables) {
  int methods = 0;
  for (const json& method : json::parse(program_says({"list", "methods", "--json"}))) {
    const auto name = method.at("name").get<std::string>();
    const std::string composition = method.at("base") ? name : "grpo + " + name;
    std::vector<Key> keys;
    for (const Key& key :
         keys_of(program_says({"help", "keys", source_path("recipes/quickstart.yaml"), "method=" + composition})))
      if (key.name.starts_with("method." + name + ".")) keys.push_back(key);
    expect_block(kPage, "keys method." + name, table_of(keys));
    ++methods;
  }
  EXPECT_GT(methods, 10);
}

TEST(RecipeKeys, OfEnvironmentsMatchThePagesTables) {
  for (const json& environment : json::parse(program_says({"list", "environments", "--json"}))) {
    const auto name = environment.at("name").get<std::string>();
    std::vector<Key> keys = keys_of(program_says({"env", name, "--help"}));
    for (Key& key : keys) key.name.insert(0, "env.");
    EXPECT_FALSE(keys.empty()) << name;
    expect_block("docs/environments.md", "keys " + name, table_of(keys));
  }
}

}  // namespace
}  // namespace carnot
