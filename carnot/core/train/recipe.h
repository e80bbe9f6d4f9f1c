// train/recipe.h -- a recipe, read and resolved: every option of a run, the environment's factory, the method.
#pragma once

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "carnot/core/alarm/options.h"
#include "carnot/core/base/result.h"
#include "carnot/core/collectives/options.h"
#include "carnot/core/config/printer.h"
#include "carnot/core/env/environment.h"
#include "carnot/core/method/method.h"
#include "carnot/core/nn/lora.h"
#include "carnot/core/train/options.h"

namespace carnot {

struct Recipe {
  RunOptions run{};
  ModelOptions model{};
  LoraOptions lora{};
  TokenizerOptions tokenizer{};
  std::string environment_name{};
  std::unique_ptr<EnvironmentFactory> environment{};
  SftOptions sft{};
  RolloutSettings rollout{};
  MethodRecipe method_recipe{};
  Method method{};
  TrainOptions train{};
  CriticOptions critic{};
  MemoryOptions memory{};
  AlarmOptions alarm{};
  EvaluationOptions evaluation{};
  TrackOptions track{};
  ProcessGroupOptions distributed{};
  std::vector<std::string> passed_over{};  ///< by load_recorded(): settings without effect, a line each

  /// Reads a recipe with `key=value` overrides. Every problem at once: where, which key, what was found and expected.
  /// Settings of methods that it does not run (`method.aem.lambda` under GRPO) are ignored with a warning; settings
  /// of its own method that nothing reads are problems. All warnings are in `method.warnings`.
  static Result<Recipe> load(const std::filesystem::path& path, const std::vector<std::string>& overrides);
  static Result<Recipe> parse(std::string_view text, const std::string& name,
                              const std::vector<std::string>& overrides);

  /// Reads the config.yaml that a run wrote, of Carnot's first version too: settings that would be refused in a recipe
  /// because they have no effect are ignored, as the run that wrote them did. `preset: paper` of the first version
  /// is `carnot` where that means the same settings today. Overrides are read as in load().
  static Result<Recipe> load_recorded(const std::filesystem::path& path, const std::vector<std::string>& overrides);

  /// Settings that can be read, and with which training could learn nothing.
  Status check_trainable() const;

  /// Of one step, refills apart: the most that one of this many ranks rolls out.
  std::int64_t step_trajectories(int ranks = 1) const { return carnot::step_trajectories(train, rollout, ranks); }

  /// Turns train.task_epochs into train.steps. Call it once the environment is prepared. An environment that makes
  /// tasks without end is an error.
  Status settle_steps();

  /// What the method needs measured, and what `rollout.extra_signals` adds.
  std::set<Measurement> measurements() const;

  /// rollout.answer_lead, or the environment's own; empty if it has none.
  std::string answer_lead() const;

  /// rollout.options, with the answers that are scored while sampling: those of information gains, but not where
  /// weights may be newer by the time that their trajectories are trained on.
  RolloutOptions rollout_options() const;

  /// rollout.*, with these options.
  RolloutSettings rollout_settings() const;

  /// The whole recipe, each field at its resolved value; reads back to an equal one.
  std::string to_yaml();

  /// The keys of a recipe with this environment and method, for --help and docs.
  FieldTable table();
};

}  // namespace carnot
