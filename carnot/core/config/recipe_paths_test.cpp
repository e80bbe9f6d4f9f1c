#include "carnot/core/config/recipe_paths.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "carnot/core/base/file.h"
#include "carnot/core/config/document.h"

namespace carnot {
namespace {

std::string shown(const Document& document, std::string_view key) { return document.find(key)->value.shown(); }

TEST(RecipePaths, ARelativePathIsLookedUpFromTheWorkingDirectoryAndThenFromTheRecipesFolder) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / ("recipe_paths_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string at = folder.string();
  for (const char* file : {"rows.jsonl", "score.py"}) ASSERT_TRUE(write_file_atomically(folder / file, "x").ok());
  const auto loaded = [&](const std::string& text, const RecipeSource& source = {}) {
    return Document::parse(text, at + "/recipe.yaml", source).value();
  };
  const Document recipe = loaded(
      "env: {name: dataset, train_file: rows.jsonl, test_file: none.jsonl, reward: [\"score.py:f\"], prompt: "
      "rows.jsonl}\n");
  EXPECT_EQ(shown(recipe, "env.train_file"), at + "/rows.jsonl");
  EXPECT_EQ(shown(recipe, "env.test_file"), "none.jsonl");
  EXPECT_EQ(shown(recipe, "env.reward"), "[\"" + at + "/score.py:f\"]");
  EXPECT_EQ(shown(recipe, "env.prompt"), "rows.jsonl") << "no path";
  EXPECT_EQ(shown(loaded("seed: 1\n", {.overrides = {"env.train_file=rows.jsonl"}}), "env.train_file"), "rows.jsonl")
      << "the command line is read where it was written";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  EXPECT_EQ(shown(loaded("env.train_file: rows.jsonl\n"), "env.train_file"), "rows.jsonl");
  std::filesystem::current_path(before);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace carnot
