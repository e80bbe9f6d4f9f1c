#include "carnot/core/train/recipe.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "carnot/core/base/log.h"
#include "carnot/core/base/unread_keys.h"
#include "carnot/core/config/document.h"
#include "carnot/core/config/reader.h"

namespace carnot {
namespace {

/// A section that has only a name, for the pass that finds out which options the section has.
struct NameOnly {
  std::string name;
  std::string help;

  void fields(FieldVisitor& visit) { visit.field("name", name, help); }
};

void read_environment(ConfigReader& reader, Recipe& recipe) {
  NameOnly choice{"search_qa", "environment; `carnot list environments` prints them"};
  reader.read("env", choice);
  auto factory = make_environment_factory(choice.name);
  recipe.environment_name = choice.name;
  if (!factory) {
    reader.refuse("env.name", factory.error().message);
    reader.skip("env");
    return;
  }
  recipe.environment = std::move(factory).value();
  reader.read("env", *recipe.environment);
}

/// AReaL's default of the importance weight's cap, where method and recipe set none.
constexpr double kAsynchronousCap = 5;

/// One recipe may hold settings of several methods, of which it runs one at a time.
void pass_over_other_methods(ConfigReader& reader, Recipe& recipe) {
  const std::vector<std::string>& names = recipe.method_recipe.names;
  for (const MethodEntry& entry : methods()) {
    const std::string name(entry.name);
    const bool is_other = std::find(names.begin(), names.end(), name) == names.end();
    if (is_other && reader.skip("method." + name))
      recipe.method.warnings.push_back("method." + name + ": not used, since the method is " + recipe.method.name);
  }
}

void read_method(ConfigReader& reader, Recipe& recipe) {
  NameOnly choice{"grpo", "method, or a composition such as grpo + aem; `carnot list methods` prints them"};
  reader.read("method", choice);
  auto parsed = parse_method(choice.name);
  if (!parsed) {
    reader.refuse("method.name", parsed.error().message);
    reader.skip("method");
    reader.skip("filter");
    reader.skip("objective");
    return;
  }
  recipe.method_recipe = std::move(parsed).value();
  reader.read("method", recipe.method_recipe);
  // What the method asks of filter and objective is the default; the recipe's own keys win.
  recipe.method = build_method(recipe.method_recipe, [&](Method& method) {
    const bool decoupled = recipe.rollout.workers.max_staleness > 0 && recipe.rollout.old_log_probs != "rollout";
    if (decoupled && method.objective.importance_cap == 0) method.objective.importance_cap = kAsynchronousCap;
    reader.read("filter", method.filter);
    reader.read("objective", method.objective);
  });
  for (const SettingProblem& problem : recipe.method.problems) reader.refuse(problem.key, problem.why);
  for (const UnreadKey& unread : recipe.method_recipe.unread_keys()) reader.unread("method." + unread.key, unread.why);
  for (const UnreadKey& unread : recipe.method.filter.unread_keys()) reader.unread("filter." + unread.key, unread.why);
  pass_over_other_methods(reader, recipe);
}

void check_asynchronous(ConfigReader& reader, Recipe& recipe) {
  const WorkerOptions& workers = recipe.rollout.workers;
  if (workers.max_staleness > 0 && workers.address.empty())
    reader.refuse("rollout.max_staleness",
                  "in one process rollouts and updates take turns; expected 0, or rollout.workers, whose workers roll "
                  "out while the trainer updates");
  if (workers.max_staleness == 0) reader.unread("rollout.in_flight_updates", "rollout.max_staleness is 0");
  if (workers.takes_other_kernels() && workers.is_asynchronous() && recipe.rollout.old_log_probs == "rollout")
    reader.refuse(
        "rollout.other_kernels",
        "the weights that sampled may be gone when a result comes, so nothing can be computed again with them; "
        "expected rollout.old_log_probs=auto, which measures with the weights that are updated, or refuse");
  if (workers.max_staleness > 0 && recipe.rollout.old_log_probs == "rollout")
    recipe.method.warnings.push_back(
        "rollout.old_log_probs=rollout with rollout.max_staleness: ratios are clipped around the weights that sampled, "
        "which are older than those that are updated; auto gives the decoupled objective");
}

/// Below it logits divided by it overflow.
constexpr double kLowestTemperature = 1e-6;

void check_temperatures(ConfigReader& reader, const Recipe& recipe) {
  if (recipe.rollout.options.sampling.temperature < kLowestTemperature)
    reader.refuse("rollout.temperature",
                  "training learns from differences between sampled trajectories, and greedy ones do not differ; "
                  "expected at least 1e-06 (eval.temperature may be 0)");
  if (recipe.evaluation.temperature > 0 && recipe.evaluation.temperature < kLowestTemperature)
    reader.refuse("eval.temperature", "expected 0, for the most likely tokens, or at least 1e-06");
}

/// Of two numbers that say when training is over, the one in the later layer counts.
void choose_length(ConfigReader& reader, Recipe& recipe) {
  constexpr std::string_view kSteps = "train.steps", kEpochs = "train.task_epochs";
  if (recipe.train.task_epochs == 0 || !reader.given(kSteps) || reader.outranked(kSteps, kEpochs)) return;
  if (!reader.outranked(kEpochs, kSteps))
    reader.refuse(kEpochs, "train.steps says when training is over, too; expected one of them");
  recipe.train.task_epochs = 0;
}

void warn_of_few_groups(Recipe& recipe) {
  const TrainOptions& train = recipe.train;
  if (train.mini_batches > train.groups_per_step)
    recipe.method.warnings.push_back("train.mini_batches: " + std::to_string(train.mini_batches) +
                                     ", but a group is never split and a step has " +
                                     std::to_string(train.groups_per_step) +
                                     " of them (train.groups_per_step): that many updates per pass are made");
}

/// What a folder decides, no key does. Where the folder is named over a recipe's shape, the shape is left out, so that
/// the resolved recipe reads back.
void check_loaded_parts(ConfigReader& reader, Recipe& recipe) {
  const auto unread = [&](const std::string& key, const std::string& by) {
    if (!reader.outranked(key, by)) reader.unread(key, by + " decides on it");
  };
  const std::string decider = recipe.tokenizer.path.empty() ? "model.path" : "tokenizer.path";
  if (!recipe.model.path.empty()) {
    unread("model.init_std", "model.path");
    for (const std::string& name : field_names([&](FieldVisitor& visit) { recipe.model.shape.fields(visit); }))
      unread("model." + name, "model.path");
    recipe.model.init_std = ModelOptions{}.init_std;
    recipe.model.shape = {};
  }
  if (recipe.tokenizer.path.empty() && recipe.model.path.empty()) return;
  unread("tokenizer.vocab_size", decider);
  recipe.tokenizer.vocab_size = TokenizerOptions{}.vocab_size;
}

/// Own rows are trained on where they say something.
void settle_demonstrations(ConfigReader& reader, SftOptions& sft) {
  if (!sft.source.empty() && !reader.given("sft.context_weight")) sft.context_weight = 0;
  if (!sft.source.empty()) return;
  for (const char* key : {"sft.held_out_share", "sft.eval_every"}) reader.unread(key, "sft.source names no file");
}

Result<Recipe> resolved(ConfigReader& reader) {
  Recipe recipe;
  reader.read("", recipe.run);
  reader.read("model", recipe.model);
  reader.read("lora", recipe.lora);
  reader.read("tokenizer", recipe.tokenizer);
  read_environment(reader, recipe);
  reader.read("sft", recipe.sft);
  settle_demonstrations(reader, recipe.sft);
  reader.read("rollout", recipe.rollout);
  read_method(reader, recipe);
  reader.read("train", recipe.train);
  reader.read("critic", recipe.critic);
  reader.read("memory", recipe.memory);
  reader.read("alarm", recipe.alarm);
  reader.read("eval", recipe.evaluation);
  reader.read("track", recipe.track);
  reader.read("distributed", recipe.distributed);
  if (recipe.train.gradient_reduction == "fast" && recipe.train.virtual_shards > 0)
    reader.unread("train.virtual_shards", "train.gradient_reduction is fast");
  choose_length(reader, recipe);
  warn_of_few_groups(recipe);
  check_temperatures(reader, recipe);
  check_asynchronous(reader, recipe);
  check_loaded_parts(reader, recipe);
  if (recipe.lora.rank > 0 && recipe.lora.targets.empty())
    reader.refuse("lora.targets", "is empty; expected the projections that get an adapter");
  const bool scores_answers = recipe.environment && recipe.measurements().contains(Measurement::InfoGain);
  if (scores_answers && recipe.answer_lead().empty())
    reader.refuse("rollout.answer_lead", "is empty, and environment '" + recipe.environment_name +
                                             "' has none; information gain needs the text before a final answer");
  CARNOT_RETURN_IF_ERROR(reader.finish());
  return recipe;
}

Result<Recipe> from_document(const Document& document) {
  for (const std::string& note : document.notes()) log_info(note);
  ConfigReader reader(document);
  return resolved(reader);
}

/// Reads again without what was ignored, until nothing is: fields took the values.
Result<Recipe> from_recorded(Document document) {
  std::vector<std::string> passed_over;
  while (true) {
    ConfigReader reader(document, Unread::PassedOver);
    auto recipe = resolved(reader);
    if (!recipe) return recipe;
    for (const PassedOver& one : reader.passed_over()) {
      passed_over.push_back(one.message);
      document.leave_out(one.key);
    }
    if (!reader.passed_over().empty()) continue;
    recipe->passed_over = std::move(passed_over);
    return recipe;
  }
}

/// What Carnot's first version called `paper` in these methods is `carnot` today.
void translate_presets(Document& document) {
  for (const MethodEntry& entry : methods()) {
    const auto presets = entry.presets();
    if (!presets.empty() && presets.front().preset == Preset::Carnot)
      document.replace("method." + std::string(entry.name) + ".preset", name_of(Preset::Paper),
                       name_of(Preset::Carnot));
  }
}

/// Since the first version every run has written down resume_changes.
bool is_of_first_version(const Document& recorded) { return recorded.find("resume_changes") == nullptr; }

}  // namespace

Result<Recipe> Recipe::load(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  CARNOT_ASSIGN_OR_RETURN(const auto document, Document::load(path, {.overrides = overrides}));
  if (document.num_written() == 0) return Error{path.string() + ": is empty; expected a recipe, such as method: grpo"};
  return from_document(document);
}

Result<Recipe> Recipe::load_recorded(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  CARNOT_ASSIGN_OR_RETURN(const auto recorded, Document::load(path));
  CARNOT_ASSIGN_OR_RETURN(auto document, Document::load(path, {.overrides = overrides}));
  if (is_of_first_version(recorded)) translate_presets(document);
  return from_recorded(std::move(document));
}

Result<Recipe> Recipe::parse(std::string_view text, const std::string& name,
                             const std::vector<std::string>& overrides) {
  CARNOT_ASSIGN_OR_RETURN(const auto document, Document::parse(text, name, {.overrides = overrides}));
  return from_document(document);
}

Status Recipe::check_trainable() const {
  if (evaluation.tasks == 0)
    return Error{"eval.tasks: is 0, and training ends with an evaluation; expected at least 1"};
  if (train.steps == 0 || rollout.options.group_size > 1 || !needs_siblings(method)) return Done{};
  return Error{"rollout.group_size: is 1, and " + method.name +
               " compares the trajectories of a group: every advantage would be 0; expected at least 2"};
}

Status Recipe::settle_steps() {
  const double epochs = std::exchange(train.task_epochs, 0);
  if (epochs == 0) return Done{};
  const std::int64_t tasks = environment->num_training_tasks();
  if (tasks == 0)
    return Error{"train.task_epochs: environment '" + environment_name +
                 "' makes tasks without end; expected train.steps"};
  const double steps = std::ceil(epochs * static_cast<double>(tasks) / train.groups_per_step);
  if (steps > kLargestCount) return Error{"train.task_epochs: makes more than a billion steps; expected less"};
  train.steps = static_cast<std::int64_t>(steps);
  log_info("train.task_epochs: " + std::to_string(tasks) + " tasks, " + std::to_string(train.groups_per_step) +
           " a step: " + std::to_string(train.steps) + " steps");
  return Done{};
}

std::set<Measurement> Recipe::measurements() const {
  std::set<Measurement> needed = carnot::measurements(method);
  for (const Measurement extra : {Measurement::Reference, Measurement::InfoGain})
    if (std::ranges::count(rollout.extra_signals, name_of(extra)) > 0) needed.insert(extra);
  return needed;
}

std::string Recipe::answer_lead() const {
  return rollout.answer_lead.empty() ? environment->answer_lead() : rollout.answer_lead;
}

RolloutOptions Recipe::rollout_options() const {
  RolloutOptions options = rollout.options;
  if (measurements().contains(Measurement::InfoGain) && !rollout.workers.is_asynchronous())
    options.answer_scoring = {.lead = {.text = answer_lead()}, .gain = method.info_gain};
  return options;
}

RolloutSettings Recipe::rollout_settings() const {
  RolloutSettings settings = rollout;
  settings.options = rollout_options();
  return settings;
}

FieldTable Recipe::table() {
  FieldTable table;
  NameOnly environment_choice{environment_name, "environment; `carnot list environments` prints them"};
  NameOnly method_choice{method.name, "method, or a composition such as grpo + aem; `carnot list methods` prints them"};
  table.add("", run);
  table.add("model", model);
  table.add("lora", lora);
  table.add("tokenizer", tokenizer);
  table.add("env", environment_choice);
  table.add("env", *environment);
  table.add("sft", sft);
  table.add("rollout", rollout);
  table.add("method", method_choice);
  table.add("method", method_recipe);
  table.add("filter", method.filter);
  table.add("objective", method.objective);
  table.add("train", train);
  table.add("critic", critic);
  table.add("memory", memory);
  table.add("alarm", alarm);
  table.add("eval", evaluation);
  table.add("track", track);
  table.add("distributed", distributed);
  return table;
}

std::string Recipe::to_yaml() { return carnot::to_yaml(table()); }

}  // namespace carnot
