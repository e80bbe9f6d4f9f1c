// recipes/methods: one recipe per method, at its defaults; each trains end to end and shows the method's effect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/data/rollout_file.h"
#include "carnot/core/run/run.h"
#include "testing/paths.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using Metrics = std::map<std::string, double>;

const fs::path kRecipes = source_path("recipes/methods");

Recipe load(const std::string& name, const std::vector<std::string>& settings = {}) {
  auto recipe = Recipe::load(kRecipes / (name + ".yaml"), settings);
  EXPECT_TRUE(recipe.ok()) << (recipe.ok() ? "" : recipe.error().message);
  return std::move(recipe).value();
}

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const MethodEntry& entry : methods()) names.emplace_back(entry.name);
  return names;
}

TEST(MethodRecipes, ExistForEveryMethod) {
  std::set<std::string> files, expected{"base"};
  for (const auto& entry : fs::directory_iterator(kRecipes)) files.insert(entry.path().stem());
  for (const std::string& name : method_names()) expected.insert(name);
  EXPECT_EQ(files, expected);
}

TEST(MethodRecipes, ShowDefaults) {
  // With the published eight initial trajectories of sixteen, a group of eight would leave ARPO no budget for branches.
  const std::set<std::string> kMayDiffer{"run_folder", "method.arpo.branch.initial"};
  for (const std::string& name : method_names()) {
    Recipe own = load(name), plain = load("base", {"method=" + load(name).method.name});
    EXPECT_EQ(own.method_recipe.names.back(), name);
    const FieldTable shown = own.table(), defaults = plain.table();
    for (std::size_t i = 0; i < shown.rows().size(); ++i) {
      const FieldRow& row = shown.rows()[i];
      if (kMayDiffer.contains(row.key)) continue;
      EXPECT_EQ(row.value, defaults.rows()[i].value) << name << ": " << row.key;
    }
  }
}

/// The recipes in an even smaller world, with one SFT-trained policy for all of them.
class RecipeOfAMethod : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    root() = fs::temp_directory_path() / ("carnot_recipes_test_" + std::to_string(::getpid()));
    train("base",
          {"run_folder=" + (root() / "start").string(), "sft.steps=120", "train.steps=0", "model.hidden_size=64",
           "model.intermediate_size=128", "model.num_layers=2", "model.num_heads=2", "model.num_kv_heads=1"});
  }
  static void TearDownTestSuite() { fs::remove_all(root()); }

  static void train(const std::string& name, std::vector<std::string> settings) {
    for (const char* small :
         {"threads=1", "env.people=8", "env.towns=4", "env.regions=2", "env.companies=2", "env.train_worlds=4",
          "sft.batch_tokens=1024", "train.groups_per_step=4", "eval.tasks=2", "eval.before_training=false"})
      settings.emplace_back(small);
    Recipe recipe = load(name, settings);
    std::ostringstream out;
    const auto end = run_training(recipe, {.out = out});
    ASSERT_TRUE(end.ok()) << end.error().message;
  }

  /// Two steps from the shared start.
  static std::vector<Metrics> metrics_of(const std::string& name) {
    const fs::path folder = root() / name, start = root() / "start/warm_start/checkpoints/global_step_120";
    if (!fs::exists(folder)) {
      // Groups of two often have no signal, so DAPO's filter would keep refilling.
      const std::string group_size = name == "dapo" ? "2" : "8";
      train(name, {"run_folder=" + folder.string(), "sft.steps=0", "train.steps=2", "model.path=" + start.string(),
                   "rollout.group_size=" + group_size});
    }
    std::vector<Metrics> steps;
    const auto text = read_file(folder / "metrics.jsonl");
    EXPECT_TRUE(text.ok());
    for (const std::string_view line : split_lines(*text)) {
      Metrics metrics;
      const Json row = Json::parse(line);
      for (const auto& [metric, value] : row.items()) {
        EXPECT_TRUE(value.is_number()) << name << ": " << metric << " is no number";
        if (value.is_number()) metrics[metric] = value.get<double>();
      }
      steps.push_back(std::move(metrics));
    }
    return steps;
  }

  static fs::path& root() {
    static fs::path path;
    return path;
  }
};
INSTANTIATE_TEST_SUITE_P(All, RecipeOfAMethod, ::testing::ValuesIn(method_names()),
                         [](const auto& info) { return info.param; });

/// A method's effect on the metrics of its first step; `grpo` are those of GRPO for the same trajectories.
using Trace = std::function<bool(const Metrics& own, const Metrics& grpo)>;

Trace has(const std::string& metric) {
  return [metric](const Metrics& own, const Metrics&) { return own.contains(metric); };
}
Trace more_than(const std::string& metric, double bound) {
  return [metric, bound](const Metrics& own, const Metrics&) { return own.contains(metric) && own.at(metric) > bound; };
}
/// Its advantages are not GRPO's.
bool other_advantages(const Metrics& own, const Metrics& grpo) {
  return own.at("critic/advantages/max") != grpo.at("critic/advantages/max") ||
         own.at("critic/advantages/mean") != grpo.at("critic/advantages/mean");
}
bool weights_differ(const Metrics& own, const Metrics&) {
  return own.at("credit/weight/min") < 1 && own.at("credit/weight/max") > 1;
}
bool clip_ranges_differ(const Metrics& own, const Metrics&) {
  return own.at("credit/clip_scale/min") < own.at("credit/clip_scale/max");
}
bool groups_are_dropped(const Metrics& own, const Metrics&) { return own.at("rollout/groups_kept") == 1; }

const std::map<std::string, Trace>& traces() {
  static const std::map<std::string, Trace> table = {
      {"ppo", more_than("critic/vf_loss", 0)},
      {"grpo", has("actor/kl_loss")},
      {"dr_grpo", other_advantages},
      {"dapo", more_than("rollout/batches", 1)},
      {"gspo", more_than("actor/pg_clipfrac", 0)},
      {"rloo", other_advantages},
      {"reinforce_plus_plus", other_advantages},
      {"starpo_s", groups_are_dropped},
      {"gigpo", other_advantages},
      {"igpo", other_advantages},
      {"arpo", more_than("rollout/branches", 0)},
      {"tree_grpo", more_than("rollout/branches", 0)},
      {"oracle", other_advantages},
      {"aepo", more_than("rollout/branches", 0)},
      {"aem", other_advantages},
      {"a2tgpo", clip_ranges_differ},
      {"aent", has("actor/clamped_entropy")},
      {"actfocus", weights_differ},
  };
  return table;
}

std::string shown(const Metrics& metrics) {
  std::ostringstream text;
  for (const auto& [name, value] : metrics) text << name << " " << value << "\n";
  return text.str();
}

TEST_P(RecipeOfAMethod, TrainsAndShowsWhatItDoes) {
  const auto steps = metrics_of(GetParam()), grpo = metrics_of("grpo");
  ASSERT_EQ(steps.size(), 2u);
  for (const Metrics& step : steps) {
    EXPECT_TRUE(step.contains("actor/pg_loss"));
    EXPECT_EQ(step.at("actor/skipped_updates"), 0);
    EXPECT_GT(step.at("actor/grad_norm"), 0);
  }
  EXPECT_GT(grpo[0].at("critic/score/max"), grpo[0].at("critic/score/min"))
      << "SFT is too good or too bad for a signal";
  for (const char* rows : {"step_1.jsonl", "step_2.jsonl"}) {
    const auto read = read_rollout_file(root() / GetParam() / "rollouts" / rows);
    EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.error().message);
  }
  ASSERT_TRUE(traces().contains(GetParam()));
  EXPECT_TRUE(traces().at(GetParam())(steps[0], grpo[0])) << shown(steps[0]);
}

}  // namespace
}  // namespace carnot
