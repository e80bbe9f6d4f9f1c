#include "small_run.h"

#include <regex>
#include <set>
#include <sstream>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"

namespace carnot::testing {
namespace {

namespace fs = std::filesystem;

// Two threads, so that threads can fail to start. PPO and the entropy bonus give an untrained policy gradients that
// depend on what it sampled.
constexpr const char* kRecipe = R"(
resume: auto
threads: 2
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 8, intermediate_size: 8, num_layers: 1, num_heads: 1, num_kv_heads: 1, head_dim: 8}
tokenizer: {vocab_size: 0}
sft: {steps: 1, batch_tokens: 100, log_every: 1}
method: ppo
objective: {entropy_coefficient: 0.01}
critic: {learning_rate: 1e-2}
rollout: {group_size: 2, max_context_tokens: 400, max_response_tokens: 8, environment_threads: 2}
train: {steps: 2, groups_per_step: 1, mini_batches: 1, learning_rate: 1e-3, save_every: 1, max_checkpoints: 1}
eval: {tasks: 1, every: 1}
)";

bool is_measured(const std::string& key) {
  return key.starts_with("timing_s/") || key.starts_with("perf/") || key == "seconds" || key == "memory" ||
         key == "latency_ms";
}

void drop_measured(OrderedJson& json) {
  if (json.is_array())
    for (OrderedJson& element : json) drop_measured(element);
  if (!json.is_object()) return;
  std::vector<std::string> measured;
  for (auto& [key, value] : json.items()) {
    if (is_measured(key)) measured.push_back(key);
    drop_measured(value);
  }
  for (const std::string& key : measured) json.erase(key);
}

/// A line that is not JSON is unchanged.
std::string without_measured(std::string_view text) {
  OrderedJson json = OrderedJson::parse(text, nullptr, false);
  if (json.is_discarded()) return std::string(text);
  drop_measured(json);
  return json.dump();
}

/// A comparison's table and page show how long its runs took: "0:01".
std::string without_clock_times(const std::string& text) {
  static const std::regex clock_time(R"(\b\d+(:\d\d)+\b)");
  return std::regex_replace(text, clock_time, "(time)");
}

std::string comparable(const fs::path& path) {
  const std::string text = read_file(path).value();
  if (path.extension() == ".json") return without_measured(text);
  if (path.extension() == ".md" || path.extension() == ".html") return without_clock_times(text);
  if (path.extension() != ".jsonl") return text;
  std::string lines;
  for (const std::string_view line : split_lines(text)) lines += without_measured(line) + "\n";
  return lines;
}

bool differs_between_equal_runs(const fs::path& path) {
  return path.filename() == ".carnot-lock" || path.filename() == "log.txt" ||
         path.filename().string().starts_with("events.out.tfevents.");
}

}  // namespace

FolderContent content_of(const fs::path& folder) {
  FolderContent content;
  if (!fs::exists(folder)) return content;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (differs_between_equal_runs(entry.path())) continue;
    const std::string name = entry.path().lexically_relative(folder).string();
    content[entry.is_directory() ? name + "/" : name] = entry.is_directory() ? "" : comparable(entry.path());
  }
  return content;
}

std::string difference(const FolderContent& expected, const FolderContent& found) {
  std::ostringstream text;
  for (const auto& [name, content] : expected) {
    const auto other = found.find(name);
    if (other == found.end()) {
      text << name << " is missing; ";
    } else if (other->second != content) {
      text << name << " differs; ";
    }
  }
  for (const auto& [name, content] : found)
    if (!expected.contains(name)) text << name << " is left over; ";
  return text.str();
}

SmallRun::SmallRun() {
  world_ = scratch_.path("world");
  fs::create_directories(world_);
  world_ = fs::canonical(world_);
  recipe_ = scratch_.write("small.yaml", "run_folder: " + folder().string() + kRecipe);
}

std::vector<std::string> SmallRun::command(const std::vector<std::string>& settings) const {
  std::vector<std::string> words{"train", recipe_};
  words.insert(words.end(), settings.begin(), settings.end());
  return words;
}

void SmallRun::reset(const fs::path& start) const {
  fs::remove_all(world_);
  fs::create_directories(world_);
  if (!start.empty()) fs::copy(start, world_, fs::copy_options::recursive);
}

}  // namespace carnot::testing
