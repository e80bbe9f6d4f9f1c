#include "carnot/view/run_files.h"

#include <algorithm>
#include <optional>
#include <set>

#include "carnot/config/numbers.h"

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

/// None where `text` is neither a number nor a range.
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

}  // namespace

Result<std::vector<RolloutsOfStep>> rollouts_at(const fs::path& path) {
  if (!fs::is_directory(path)) return std::vector{RolloutsOfStep{.step = step_in(path, "step_"), .path = path}};
  auto all = steps_in(fs::is_directory(path / "rollouts") ? path / "rollouts" : path, "step_");
  if (!all.empty()) return all;
  return Error{path.string() + ": expected a rollouts file or a run folder, found no rollouts/step_N.jsonl in it"};
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
    if (!known)
      problems.push_back("--steps: there are no rollouts of step " + text + "; there are steps " + span_text(all));
  }
  if (!problems.empty()) return join_errors(problems);
  std::vector<RolloutsOfStep> chosen;
  std::ranges::copy_if(all, std::back_inserter(chosen),
                       [&](const RolloutsOfStep& one) { return steps.contains(one.step); });
  return chosen;
}

fs::path tokenizer_beside(const fs::path& rollouts) {
  const fs::path run = fs::absolute(rollouts).parent_path().parent_path();
  std::vector<fs::path> folders{run};
  const auto checkpoints = steps_in(run / "checkpoints", "global_step_");
  if (!checkpoints.empty()) folders.push_back(checkpoints.back().path);
  for (const fs::path& folder : folders)
    if (fs::exists(folder / "tokenizer.json")) return folder / "tokenizer.json";
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
