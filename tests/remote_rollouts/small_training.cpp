#include "tests/remote_rollouts/small_training.h"

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

constexpr const char* kRecipe = R"(
threads: 1
model: {hidden_size: 32, intermediate_size: 48, num_layers: 2, num_heads: 2, num_kv_heads: 1, head_dim: 16}
env: {name: search_qa, train_worlds: 2, held_out_worlds: 1}
sft: {steps: 6, batch_tokens: 600}
method: ppo
objective: {entropy_coefficient: 0.01}
critic: {learning_rate: 1e-2}
rollout: {group_size: 3, max_context_tokens: 320, max_response_tokens: 24, workers_lease_seconds: 2}
train: {steps: 6, groups_per_step: 5, mini_batches: 2, learning_rate: 1e-3, save_every: 1}
eval: {tasks: 2, before_training: false}
)";

std::vector<Json> lines_of(const std::string& path) {
  const auto text = read_file(path);
  EXPECT_TRUE(text.ok()) << path;
  std::vector<Json> lines;
  if (text)
    for (std::string_view line : split_lines(*text)) lines.push_back(parse_json(line, path).value());
  return lines;
}

}  // namespace

SmallTraining::SmallTraining() : recipe_(scratch_.write("tiny.yaml", kRecipe)) {}

std::vector<std::string> SmallTraining::train(const std::string& run, const std::vector<std::string>& overrides) const {
  std::vector<std::string> words{"train", recipe_, "run_folder=" + scratch_.path(run)};
  words.insert(words.end(), overrides.begin(), overrides.end());
  return words;
}

Background SmallTraining::background(std::vector<std::string> words, const std::vector<std::string>& environment) {
  words.insert(words.begin(), build_path("carnot"));
  return {words, scratch_.path("log." + std::to_string(logs_++)), environment};
}

std::string SmallTraining::checkpoint(const std::string& run, int step) const {
  return scratch_.path(run) + "/checkpoints/global_step_" + std::to_string(step);
}

std::string SmallTraining::weights(const std::string& run) const {
  const auto file = read_file(checkpoint(run, kSteps) + "/model.safetensors");
  return file ? sha256_hex(*file) : "none: " + file.error().message;
}

std::vector<std::string> SmallTraining::metrics(const std::string& run) const {
  std::vector<std::string> steps;
  for (const Json& all : lines_of(scratch_.path(run) + "/metrics.jsonl")) {
    Json kept = Json::object();
    for (const auto& [name, value] : all.items())
      if (!name.starts_with("timing_s/") && !name.starts_with("perf/") && !name.starts_with("async/"))
        kept[name] = value;
    steps.push_back(kept.dump());
  }
  return steps;
}

std::vector<double> SmallTraining::metric(const std::string& run, const std::string& name) const {
  std::vector<double> values;
  for (const Json& all : lines_of(scratch_.path(run) + "/metrics.jsonl")) {
    EXPECT_TRUE(all.contains(name)) << all.dump();
    if (all.contains(name)) values.push_back(all.at(name).get<double>());
  }
  return values;
}

std::vector<std::string> SmallTraining::rollouts(const std::string& run, int step) const {
  std::vector<std::string> rows;
  for (Json row : lines_of(scratch_.path(run) + "/rollouts/step_" + std::to_string(step) + ".jsonl")) {
    for (Json& turn : row.at("turns")) turn.erase("latency_ms");
    rows.push_back(sha256_hex(row.dump()));
  }
  EXPECT_FALSE(rows.empty());
  return rows;
}

std::vector<std::string> SmallTraining::column(const std::string& run, int step, const std::string& name) const {
  std::vector<std::string> values;
  for (const Json& row : lines_of(scratch_.path(run) + "/rollouts/step_" + std::to_string(step) + ".jsonl"))
    values.push_back(row.at(name).dump());
  EXPECT_FALSE(values.empty());
  return values;
}

void SmallTraining::expect_same_run(const std::string& run, const std::string& straight) const {
  EXPECT_EQ(weights(run), weights(straight));
  EXPECT_EQ(metrics(run), metrics(straight));
}

}  // namespace carnot::testing
