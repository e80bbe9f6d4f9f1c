// recipes/published: the papers' settings. Each resolves and is planned (a dry run) with a small model and the small
// stand-ins of its data, and says what its paper reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/run/run.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::vector<fs::path> published_recipes() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(source_path("recipes/published"))) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class PublishedRecipe : public ::testing::TestWithParam<fs::path> {
 protected:
  static std::vector<std::string> small_settings(const std::string& environment) {
    const std::string tasks = source_path("tests/tasks");
    const std::string questions = source_path("examples/web_search/questions.jsonl");
    const std::map<std::string, std::vector<std::string>> data{
        {"alfworld", {"env.task_source=" + tasks + "/alfworld"}},
        {"webshop", {"env.task_source=" + tasks + "/large_shop"}},
        {"gsm8k", {"env.task_source=" + tasks}},
        {"open_qa", {"env.train_file=", "env.test_file=", "env.task_source=" + tasks + "/open_qa", "env.retriever="}},
        {"dataset", {"env.train_file=" + questions, "env.test_file=" + questions, "env.tools=[calculator]"}}};
    std::vector<std::string> settings{"model.path=",        "model.hidden_size=32", "model.intermediate_size=32",
                                      "model.num_layers=1", "model.num_heads=2",    "model.num_kv_heads=1",
                                      "model.head_dim=16",  "dtype=float32"};
    if (const auto found = data.find(environment); found != data.end())
      settings.insert(settings.end(), found->second.begin(), found->second.end());
    return settings;
  }
};

TEST_P(PublishedRecipe, IsPlannedAndSaysWhatItsPaperReports) {
  const std::string text = read_file(GetParam()).value();
  EXPECT_THAT(text, HasSubstr("eported"));
  EXPECT_THAT(text, HasSubstr("arXiv:"));
  const auto published = Recipe::load(GetParam(), {});
  ASSERT_TRUE(published.ok()) << published.error().message;
  EXPECT_EQ(published->run.run_folder, "runs/published/" + GetParam().stem().string());
  auto small = Recipe::load(GetParam(), small_settings(published->environment_name));
  ASSERT_TRUE(small.ok()) << small.error().message;
  std::ostringstream out;
  const Status planned = dry_run(*small, MemoryStage::Training, 1, out);
  EXPECT_TRUE(planned.ok()) << planned.error().message;
}

INSTANTIATE_TEST_SUITE_P(All, PublishedRecipe, ::testing::ValuesIn(published_recipes()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace carnot
