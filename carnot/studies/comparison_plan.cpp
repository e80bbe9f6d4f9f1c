#include "carnot/studies/comparison_plan.h"

#include <algorithm>
#include <set>

#include "carnot/core/base/file.h"
#include "carnot/core/run/recorded_settings.h"
#include "carnot/core/run/run_folder.h"
#include "carnot/studies/seeds.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::string>;

std::string key_of(const std::string& setting) { return setting.substr(0, setting.find('=')); }

bool stands_in(std::string_view key, std::initializer_list<std::string_view> sections) {
  return std::any_of(sections.begin(), sections.end(),
                     [&](std::string_view section) { return key.starts_with(section); });
}

/// `over` replaces settings of the same key.
Settings laid_over(Settings settings, const Settings& over) {
  std::set<std::string> keys;
  for (const std::string& setting : over) keys.insert(key_of(setting));
  std::erase_if(settings, [&](const std::string& setting) { return keys.contains(key_of(setting)); });
  settings.insert(settings.end(), over.begin(), over.end());
  return settings;
}

/// What the comparison decides itself, and what all methods must share.
std::vector<std::string> problems_with_keys(const ComparisonRequest& request,
                                            const std::vector<Contestant>& contestants) {
  std::vector<std::string> problems;
  for (const std::string& setting : request.settings) {
    const std::string key = key_of(setting);
    if (key == "method" || key == "method.name")
      problems.push_back("command line: " + key + ": name the methods with --methods");
    if (key == "seed") problems.push_back("command line: seed: name the seeds with --seeds");
    if (key == "run_folder") problems.push_back("command line: run_folder: name the folder with --output");
    if (key == "resume")
      problems.push_back("command line: resume: a comparison always continues with what its folder holds");
  }
  for (const Contestant& contestant : contestants)
    for (const std::string& setting : contestant.settings) {
      const std::string key = key_of(setting);
      const bool is_own =
          contestant.is_sft()
              ? key.starts_with("sft.")
              : stands_in(key + ".", {"method.", "filter.", "objective.", "train.", "critic.", "rollout."});
      if (!is_own)
        problems.push_back(contestant.name() + ": " + key + ": all methods share it; expected a key of " +
                           (contestant.is_sft() ? "sft" : "method, filter, objective, train, critic or rollout"));
    }
  return problems;
}

/// The shape that the policy of the start has.
bool is_decided_by_the_start(const std::string& key) {
  return key == "tokenizer.vocab_size" || (key.starts_with("model.") && key != "model.adapter");
}

fs::path seed_folder(const fs::path& output, std::int64_t seed) { return output / ("seed_" + std::to_string(seed)); }

Result<Recipe> start_recipe(const ComparisonRequest& request, std::int64_t seed) {
  const fs::path folder = seed_folder(request.output, seed) / "warm_start";
  Settings settings = laid_over(request.settings, {"seed=" + std::to_string(seed), "run_folder=" + folder.string(),
                                                   "resume=auto", "resume_changes=allow"});
  auto recipe = Recipe::load(request.recipe, settings);
  if (!recipe || recipe->sft.steps > 0) return recipe;
  // Without SFT there is only the evaluation of what the runs start from: a run of no steps.
  return Recipe::load(request.recipe, laid_over(settings, {"train.steps=0", "eval.before_training=false"}));
}

Result<Recipe> run_recipe(const ComparisonRequest& request, const Contestant& contestant, const PlannedSeed& planned) {
  const fs::path folder = seed_folder(request.output, planned.seed) / contestant.folder();
  Settings settings = laid_over(request.settings, contestant.settings);
  settings = laid_over(settings, {"seed=" + std::to_string(planned.seed), "run_folder=" + folder.string(),
                                  "resume=auto", "resume_changes=allow", "eval.before_training=false"});
  settings =
      laid_over(settings, contestant.is_sft() ? Settings{"train.steps=0"} : Settings{"method=" + contestant.method});
  if (planned.start.sft.steps > 0 && !contestant.is_sft()) {
    const fs::path policy = RunFolder{planned.start.run.run_folder}.checkpoints() /
                            ("global_step_" + std::to_string(planned.start.sft.steps));
    std::erase_if(settings, [](const std::string& setting) { return is_decided_by_the_start(key_of(setting)); });
    settings = laid_over(settings, {"sft.steps=0", "model.path=" + policy.string()});
  }
  auto recipe = Recipe::load(request.recipe, settings);
  if (recipe && recipe->train.task_epochs > 0)
    return Error{"train.task_epochs: a comparison counts steps; expected train.steps"};
  if (recipe && contestant.is_sft() && recipe->sft.steps == 0)
    return Error{"sft.steps: is 0; expected how many steps SFT takes"};
  return recipe;
}

/// Every line of the message behind the contestant's name.
void add_problems(std::vector<std::string>& problems, const std::string& who, const Error& error) {
  for (const std::string_view line : split_lines(error.message)) {
    std::string problem = who + ": " + std::string(line);
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) problems.push_back(std::move(problem));
  }
}

/// A folder of other settings is never continued. What is ignored here, the runs take with resume_changes=allow.
void check_folder(std::vector<std::string>& problems, Recipe& recipe, const Ignored& ignored) {
  const auto differing = differing_settings(RunFolder{recipe.run.run_folder}.config(), recipe, ignored);
  if (!differing) {
    add_problems(problems, recipe.run.run_folder, differing.error());
    return;
  }
  for (const SettingDifference& difference : *differing)
    problems.push_back(recipe.run.run_folder + ": holds a run of other settings: " + in_words(difference) +
                       "; name another folder with --output");
}

/// A policy is the same whatever is done with it later. micro_batch_tokens decides how gradients are summed.
bool after_the_start(std::string_view key) {
  return stands_in(key, {"method.", "filter.", "objective.", "critic.", "train."}) && key != "train.micro_batch_tokens";
}

/// A run that begins at the start of a seed takes no such steps, and where that lies follows from the layout of the
/// folder, under whatever path it is seen.
Ignored before_the_run(const PlannedSeed& planned, const Contestant& contestant) {
  return [has_start = planned.start.sft.steps > 0 && !contestant.is_sft()](std::string_view key) {
    return has_start && (key == "model.path" || key.starts_with("sft."));
  };
}

/// Objective keys that the recipe sets to something else than the method asks for.
std::string objective_note(const Contestant& contestant, Recipe& recipe) {
  if (contestant.is_sft()) return "";
  Method own = build_method(recipe.method_recipe);
  FieldTable asked, given;
  asked.add("objective", own.objective);
  given.add("objective", recipe.method.objective);
  std::string changes;
  for (std::size_t i = 0; i < given.rows().size(); ++i) {
    const FieldRow &now = given.rows()[i], &before = asked.rows()[i];
    const bool is_own = std::any_of(contestant.settings.begin(), contestant.settings.end(),
                                    [&](const std::string& setting) { return key_of(setting) == now.key; });
    if (now.value != before.value && !is_own)
      changes += (changes.empty() ? "" : ", ") + now.key + " is " + now.value + ", the method's own is " + before.value;
  }
  return changes.empty() ? "" : contestant.name() + ": " + changes;
}

/// The contestants that the recipe can have; the others of `all` are left out, named ones are problems.
std::vector<Contestant> applicable(const ComparisonRequest& request, const std::vector<Contestant>& contestants,
                                   const PlannedSeed& first, ComparisonPlan& plan, std::vector<std::string>& problems) {
  std::vector<Contestant> kept;
  for (const Contestant& contestant : contestants) {
    auto recipe = run_recipe(request, contestant, first);
    if (recipe) {
      kept.push_back(contestant);
      if (const std::string note = objective_note(contestant, *recipe); !note.empty()) plan.notes.push_back(note);
    } else if (contestant.from_all) {
      plan.left_out.push_back({contestant.name(), recipe.error().message});
    } else {
      add_problems(problems, contestant.name(), recipe.error());
    }
  }
  return kept;
}

/// The first, unless `all` put it there: then GRPO, if it is among them.
std::size_t default_base(const std::vector<Contestant>& contestants) {
  const auto grpo =
      std::find_if(contestants.begin(), contestants.end(), [](const Contestant& one) { return one.name() == "grpo"; });
  return contestants.front().from_all && grpo != contestants.end()
             ? static_cast<std::size_t>(grpo - contestants.begin())
             : 0;
}

Result<std::size_t> find_base(const std::string& base, const std::vector<Contestant>& contestants) {
  if (base.empty()) return default_base(contestants);
  const auto wanted = parse_contestants(base);
  if (wanted && wanted->size() == 1)
    for (std::size_t i = 0; i < contestants.size(); ++i)
      if (contestants[i].name() == wanted->front().name()) return i;
  std::string names;
  for (const Contestant& contestant : contestants) names += (names.empty() ? "" : ", ") + contestant.name();
  return Error{"base: \"" + base + "\" is not among the methods that are compared; expected one of " + names};
}

Result<PlannedSeed> plan_seed(const ComparisonRequest& request, const std::vector<Contestant>& contestants,
                              std::int64_t seed) {
  CARNOT_ASSIGN_OR_RETURN(auto start, start_recipe(request, seed));
  PlannedSeed planned{.seed = seed, .start = std::move(start)};
  for (const Contestant& contestant : contestants) {
    CARNOT_ASSIGN_OR_RETURN(auto recipe, run_recipe(request, contestant, planned));
    planned.runs.push_back(std::move(recipe));
  }
  return planned;
}

}  // namespace

Result<ComparisonPlan> plan_comparison(const ComparisonRequest& request) {
  std::vector<std::string> problems;
  const auto contestants = parse_contestants(request.methods);
  if (!contestants) problems.push_back(contestants.error().message);
  const auto seeds = parse_seeds(request.seeds);
  if (!seeds) problems.push_back(seeds.error().message);
  if (contestants)
    for (const std::string& problem : problems_with_keys(request, *contestants)) problems.push_back(problem);
  if (!problems.empty()) return join_errors(problems);

  ComparisonPlan plan{.recipe = request.recipe.string(), .output = request.output};
  CARNOT_ASSIGN_OR_RETURN(auto first, plan_seed(request, {}, seeds->front()));
  plan.contestants = applicable(request, *contestants, first, plan, problems);
  if (problems.empty() && plan.contestants.empty())
    problems.push_back("methods: none of all methods can be had with this recipe: " + plan.left_out.front().reason);
  if (!problems.empty()) return join_errors(problems);
  CARNOT_ASSIGN_OR_RETURN(const auto base, find_base(request.base, plan.contestants));
  plan.base = base;
  for (const std::int64_t seed : *seeds) {
    CARNOT_ASSIGN_OR_RETURN(auto planned, plan_seed(request, plan.contestants, seed));
    check_folder(problems, planned.start, after_the_start);
    for (std::size_t c = 0; c < planned.runs.size(); ++c)
      check_folder(problems, planned.runs[c], before_the_run(planned, plan.contestants[c]));
    plan.seeds.push_back(std::move(planned));
  }
  if (!problems.empty()) return join_errors(problems);
  return plan;
}

bool is_finished(const fs::path& run_folder) { return fs::exists(run_folder / "summary.json"); }

bool is_start_finished(const fs::path& run_folder) { return fs::exists(run_folder / "validation" / "after.json"); }

std::string plan_text(const ComparisonPlan& plan) {
  std::string text = std::to_string(plan.contestants.size() * plan.seeds.size()) +
                     " runs: " + std::to_string(plan.contestants.size()) + " methods, " +
                     std::to_string(plan.seeds.size()) + " seeds; base " + plan.contestants[plan.base].name() + "\n";
  const auto line = [&](const std::string& folder, bool finished) {
    const char* state = finished ? "finished" : RunFolder{folder}.holds_run() ? "begun" : "to do";
    text += "  " + folder + ": " + state + "\n";
  };
  for (const PlannedSeed& planned : plan.seeds) {
    line(planned.start.run.run_folder, is_start_finished(planned.start.run.run_folder));
    for (const Recipe& recipe : planned.runs) line(recipe.run.run_folder, is_finished(recipe.run.run_folder));
  }
  for (const LeftOut& left : plan.left_out) text += "left out: " + left.name + ": " + left.reason + "\n";
  for (const std::string& note : plan.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace carnot
