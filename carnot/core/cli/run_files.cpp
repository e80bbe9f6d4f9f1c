#include "carnot/core/cli/run_files.h"

#include <algorithm>
#include <optional>
#include <set>

#include "carnot/core/base/strings.h"
#include "carnot/core/config/document.h"
#include "carnot/core/config/numbers.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

/// The number in "step_12.jsonl" or "global_step_12"; -1 for other names.
std::int64_t step_in(const fs::path& path, std::string_view prefix) {
  const std::string name = path.stem() == path.filename() ? path.filename().string() : path.stem().string();
  if (!name.starts_with(prefix)) return -1;
  return parse_whole_number(std::string_view(name).substr(prefix.size())).value_or(-1);
}

/// The entries of `folder` whose names hold a step, by step.
std::vector<RolloutsOfStep> steps_in(const fs::path& folder, std::string_view prefix) {
  std::vector<RolloutsOfStep> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (const std::int64_t step = step_in(entry.path(), prefix); step >= 0)
      found.push_back({.step = step, .path = entry.path()});
  std::ranges::sort(found, {}, &RolloutsOfStep::step);
  return found;
}

struct Range {
  std::int64_t first = 0, last = 0;
};

/// Empty if `text` is neither a number nor a range.
std::optional<Range> range_of(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = parse_whole_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_whole_number(text.substr(dash + 1));
  if (!first || !last || *first < 0 || *last < *first) return std::nullopt;
  return Range{.first = *first, .last = *last};
}

std::string span_text(const std::vector<RolloutsOfStep>& all) {
  return all.size() == 1 ? std::to_string(all.front().step)
                         : std::to_string(all.front().step) + " to " + std::to_string(all.back().step);
}

std::vector<RolloutsOfStep> at_even_distances(const std::vector<RolloutsOfStep>& all, std::size_t most) {
  if (all.size() <= most) return all;
  std::vector<RolloutsOfStep> chosen;
  for (std::size_t i = 0; i < most; ++i)
    chosen.push_back(all[most == 1 ? all.size() - 1 : i * (all.size() - 1) / (most - 1)]);
  return chosen;
}

/// A comparison has its runs two levels down.
std::vector<std::string> runs_below(const fs::path& folder) {
  constexpr int kDeepest = 2;
  std::vector<std::string> runs;
  std::error_code failed;
  for (fs::recursive_directory_iterator entry(folder, failed), end; entry != end; entry.increment(failed)) {
    const bool is_run = !steps_in(entry->path() / "rollouts", "step_").empty();
    if (is_run) runs.push_back(entry->path().string());
    if (is_run || entry.depth() == kDeepest) entry.disable_recursion_pending();
  }
  std::ranges::sort(runs);
  return runs;
}

Error no_rollouts(const fs::path& folder) {
  constexpr std::size_t kMostNamed = 12;
  std::vector<std::string> runs = runs_below(folder);
  if (runs.empty())
    return {folder.string() + ": expected a rollouts file or a run folder, found no rollouts/step_N.jsonl in it"};
  if (runs.size() > kMostNamed) {
    runs.resize(kMostNamed);
    runs.emplace_back("...");
  }
  return {folder.string() + ": holds runs; expected one of them: " + join(runs, ", ")};
}

/// The folder that the setting `key` names, itself or by its tokenizer.json; empty if it names none.
fs::path folder_named_in(const fs::path& config, const char* key) {
  const auto recipe = Document::load(config);
  const Setting* setting = recipe ? recipe->find(key) : nullptr;
  if (setting == nullptr || setting->value.items.empty()) return {};
  const fs::path path = setting->value.items.front().text;
  return path.filename() == "tokenizer.json" ? path.parent_path() : path;
}

/// The latest checkpoint of a stage; the folder itself where it has none.
fs::path latest_checkpoint_in(const fs::path& stage) {
  const auto checkpoints = steps_in(stage / "checkpoints", "global_step_");
  return checkpoints.empty() ? stage : checkpoints.back().path;
}

}  // namespace

Result<std::vector<RolloutsOfStep>> rollouts_at(const fs::path& path) {
  if (!fs::is_directory(path)) return std::vector{RolloutsOfStep{.step = step_in(path, "step_"), .path = path}};
  auto all = steps_in(fs::is_directory(path / "rollouts") ? path / "rollouts" : path, "step_");
  if (!all.empty()) return all;
  return no_rollouts(path);
}

Result<std::vector<RolloutsOfStep>> choose_steps(const std::vector<RolloutsOfStep>& all,
                                                 const std::vector<std::string>& wanted, std::size_t most) {
  if (wanted.empty()) return at_even_distances(all, most);
  std::vector<std::string> problems;
  std::set<std::int64_t> steps;
  for (const std::string& text : wanted) {
    const auto range = range_of(text);
    if (!range) {
      problems.push_back("--steps: expected steps and ranges such as 1,5,10-20, found \"" + text + "\"");
      continue;
    }
    bool known = false;
    for (const RolloutsOfStep& one : all)
      if (one.step >= range->first && one.step <= range->last) steps.insert(one.step), known = true;
    if (!known) problems.push_back("there are no rollouts of step " + text + "; there are steps " + span_text(all));
  }
  if (!problems.empty()) return join_errors(problems);
  std::vector<RolloutsOfStep> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen),
                       [&](const RolloutsOfStep& one) { return steps.contains(one.step); });
  return chosen;
}

fs::path tokenizer_beside(const fs::path& rollouts) {
  const fs::path run = fs::absolute(rollouts).parent_path().parent_path();
  const fs::path config = run / "config.yaml";
  for (const fs::path& folder : {run, latest_checkpoint_in(run), latest_checkpoint_in(run / "warm_start"),
                                 folder_named_in(config, "tokenizer.path"), folder_named_in(config, "model.path")})
    if (!folder.empty() && fs::exists(folder / "tokenizer.json")) return folder / "tokenizer.json";
  return {};
}

Status check_tokens(const Trajectory& trajectory, const Tokenizer& tokenizer, const fs::path& path) {
  for (const TokenId id : trajectory.tokens())
    if (id < 0 || id >= tokenizer.vocab_size() || !tokenizer.has(id))
      return Error{path.string() + ": has no token " + std::to_string(id) +
                   ", which the rollouts contain; name their tokenizer with --tokenizer"};
  return Done{};
}

}  // namespace carnot
