// Whole runs of a model that trains in moments, for tests of what runs leave behind.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/run/run.h"
#include "carnot/core/train/recipe.h"

namespace carnot::testing {

// An untrained policy earns the same reward everywhere. The critic and the entropy bonus make every token's gradient
// depend on what was sampled nevertheless.
inline constexpr const char* kTinyRecipe = R"(
threads: 1
model: {hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
sft: {steps: 6, batch_tokens: 600, log_every: 1}
method: ppo
objective: {entropy_coefficient: 0.01}
critic: {learning_rate: 1e-2}
rollout: {group_size: 3, max_context_tokens: 320, max_response_tokens: 24}
train: {steps: 4, groups_per_step: 3, mini_batches: 2, learning_rate: 1e-3, save_every: 1}
eval: {tasks: 4}
)";

inline const std::vector<std::string> kLora{"lora.rank=3", "lora.alpha=6", "sft.learning_rate=1e-2",
                                            "train.learning_rate=1e-2", "objective.kl_coefficient=0.1"};

/// The size of everything below a folder, in bytes, except for what `left_out` names.
inline std::uintmax_t bytes_in(const std::filesystem::path& folder, const std::string& left_out = "") {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file() && entry.path().filename() != left_out) bytes += entry.file_size();
  return bytes;
}

class Runs : public ::testing::Test {
 protected:
  Runs() : root_(std::filesystem::temp_directory_path() / ("carnot_runs_test_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(root_);
  }
  ~Runs() override { std::filesystem::remove_all(root_); }

  using Stop = std::function<bool()>;

  /// Lines of a run's metrics, those of its SFT included.
  std::size_t steps_logged(const std::string& name) const {
    std::size_t lines = 0;
    for (const std::filesystem::path& folder : {root_ / name / "warm_start", root_ / name})
      if (const auto text = read_file(folder / "metrics.jsonl")) lines += split_lines(*text).size();
    return lines;
  }

  /// Stops a run once it has logged this many steps and then polled this many times whether to continue.
  Stop stop_after(const std::string& name, std::size_t steps, int asks = 0) {
    return [this, name, steps, left = asks]() mutable { return steps_logged(name) >= steps && left-- <= 0; };
  }

  /// Trains in the folder `name`, until `stop` says so.
  RunEnd train(const std::string& name, std::vector<std::string> overrides, const Stop& stop = [] { return false; }) {
    overrides.push_back("run_folder=" + (root_ / name).string());
    auto recipe = Recipe::parse(recipe_, "tiny.yaml", overrides);
    EXPECT_TRUE(recipe.ok()) << (recipe.ok() ? "" : recipe.error().message);
    std::ostringstream out;
    const auto end = run_training(*recipe, {.out = out, .stop_requested = stop});
    EXPECT_TRUE(end.ok()) << (end.ok() ? "" : end.error().message);
    return *end;
  }

  /// Why no run in the folder `name` starts, or how it ends before its last step; "" if it completes.
  std::string failure_of(const std::string& name, std::vector<std::string> overrides) {
    overrides.push_back("run_folder=" + (root_ / name).string());
    auto recipe = Recipe::parse(recipe_, "tiny.yaml", overrides);
    EXPECT_TRUE(recipe.ok()) << (recipe.ok() ? "" : recipe.error().message);
    std::ostringstream out;
    const auto end = run_training(*recipe, {.out = out});
    return end.ok() ? std::string() : end.error().message;
  }

  std::filesystem::path checkpoint(const std::string& name, int step = 4) const {
    return root_ / name / "checkpoints" / ("global_step_" + std::to_string(step));
  }

  /// What was trained: the adapters if there are any.
  std::string weights(const std::string& name, int step = 4) const {
    const std::filesystem::path folder = checkpoint(name, step);
    const std::filesystem::path adapters = folder / "adapter" / "adapter_model.safetensors";
    const auto file = read_file(std::filesystem::exists(adapters) ? adapters : folder / "model.safetensors");
    EXPECT_TRUE(file.ok()) << (file.ok() ? "" : file.error().message);
    return *file;
  }

  /// By step, everything except times.
  std::vector<Json> metrics(const std::string& name) const {
    std::vector<Json> steps;
    const auto text = read_file(root_ / name / "metrics.jsonl");
    for (std::string_view line : split_lines(*text)) {
      const Json all = Json::parse(line);
      steps.push_back(Json::object());
      for (const auto& [metric, value] : all.items())
        if (!metric.starts_with("timing_s/") && !metric.starts_with("perf/")) steps.back()[metric] = value;
    }
    return steps;
  }

  /// Stops a run after `steps` steps, resumes it, and compares weights and metrics with those of the uninterrupted run,
  /// whose metrics are returned.
  std::vector<Json> expect_resumes(const std::vector<std::string>& overrides, std::size_t steps) {
    EXPECT_EQ(train("straight", overrides), RunEnd::Complete);
    EXPECT_EQ(train("stopped", overrides, stop_after("stopped", steps)), RunEnd::Interrupted);
    std::vector<std::string> resumed = overrides;
    resumed.push_back("resume=auto");
    EXPECT_EQ(train("stopped", resumed), RunEnd::Complete);
    EXPECT_TRUE(weights("stopped") == weights("straight"));
    EXPECT_EQ(metrics("stopped"), metrics("straight"));
    return metrics("straight");
  }

  std::filesystem::path root_;
  const char* recipe_ = kTinyRecipe;
};

}  // namespace carnot::testing
