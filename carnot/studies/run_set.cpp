#include "carnot/studies/run_set.h"

#include <algorithm>
#include <set>

#include "carnot/core/config/document.h"
#include "carnot/core/config/numbers.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfig = "config.yaml";

/// Keys that say where and on what a run ran, not what it tries.
const std::set<std::string> kIncidental{"seed",
                                        "run_folder",
                                        "resume",
                                        "threads",
                                        "device",
                                        "model.path",
                                        "tokenizer.path",
                                        "train.keep_rollouts",
                                        "train.max_checkpoints",
                                        "train.save_every",
                                        "train.save_minutes",
                                        "train.save_optimizer"};

std::int64_t step_of(const fs::path& file) {
  const std::string stem = file.stem().string();
  constexpr std::string_view kPrefix = "step_";
  if (!stem.starts_with(kPrefix)) return 0;
  return parse_whole_number(std::string_view(stem).substr(kPrefix.size())).value_or(0);
}

std::vector<RolloutPath> rollouts_in(const fs::path& folder) {
  std::vector<RolloutPath> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none))
    if (entry.path().extension() == ".jsonl") found.push_back({step_of(entry.path()), entry.path()});
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.step < b.step; });
  return found;
}

std::string text_of(const SettingValue& value) {
  return value.kind == SettingValue::Kind::Scalar ? value.items.front().text : value.shown();
}

Result<StudiedRun> load_run(const fs::path& folder) {
  CARNOT_ASSIGN_OR_RETURN(const auto document, Document::load(folder / kConfig));
  StudiedRun run{.folder = folder, .rollouts = rollouts_in(folder / "rollouts")};
  for (const auto& [key, setting] : document.settings()) run.settings[key] = text_of(setting.value);
  const auto setting = [&](const std::string& key) {
    const Setting* found = document.find(key);
    return found == nullptr ? std::string() : text_of(found->value);
  };
  run.seed = static_cast<std::int64_t>(run.number("seed", 0));
  run.environment = setting("env.name");
  run.label = run.method = setting("method.name");
  return run;
}

void collect_run_folders(const fs::path& folder, std::vector<fs::path>& found) {
  if (fs::exists(folder / kConfig)) return found.push_back(folder);
  std::vector<fs::path> inside;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && entry.path().filename() != "warm_start") inside.push_back(entry.path());
  std::sort(inside.begin(), inside.end());
  for (const fs::path& one : inside) collect_run_folders(one, found);
}

/// A rollouts file, with the settings of its run where it lies in one.
Result<StudiedRun> run_of_file(const fs::path& file) {
  StudiedRun run{.folder = file, .label = file.stem().string()};
  const fs::path folder = fs::absolute(file).parent_path().parent_path();
  if (fs::exists(folder / kConfig)) {
    CARNOT_ASSIGN_OR_RETURN(auto loaded, load_run(folder));
    run = std::move(loaded);
  }
  run.rollouts = {{step_of(file), file}};
  return run;
}

Status add_runs(const fs::path& path, std::vector<StudiedRun>& runs) {
  if (!fs::exists(path)) return Error{path.string() + ": is not there"};
  if (!fs::is_directory(path)) {
    CARNOT_ASSIGN_OR_RETURN(auto run, run_of_file(path));
    runs.push_back(std::move(run));
    return Done{};
  }
  std::vector<fs::path> folders;
  collect_run_folders(path, folders);
  if (folders.empty())
    return Error{path.string() + ": holds no run; expected a folder with a config.yaml in it or below"};
  for (const fs::path& folder : folders) {
    CARNOT_ASSIGN_OR_RETURN(auto run, load_run(folder));
    runs.push_back(std::move(run));
  }
  return Done{};
}

/// By key, the value of each run that has it.
using ValuesByKey = std::map<std::string, std::map<const StudiedRun*, std::string>>;

/// Whether runs differ in the setting, which is not one that their method sets by a key of its own (method.*).
bool tells_apart(const std::string& key, const ValuesByKey& values) {
  const auto& own = values.at(key);
  const auto differs = [&](const auto& of_run) { return of_run.second != own.begin()->second; };
  const auto sets_it = [&](const auto& other) { return other.first.starts_with("method.") && other.second == own; };
  if (std::none_of(own.begin(), own.end(), differs)) return false;
  return key.starts_with("method.") || std::none_of(values.begin(), values.end(), sets_it);
}

/// The settings in which runs with the same label differ are behind it.
void tell_apart(std::vector<StudiedRun>& runs) {
  std::map<std::string, ValuesByKey> by_label;
  for (const StudiedRun& run : runs)
    for (const auto& [key, value] : run.settings)
      if (!kIncidental.contains(key)) by_label[run.label][key][&run] = value;
  for (StudiedRun& run : runs) {
    const ValuesByKey& values = by_label[run.label];
    for (const auto& [key, value] : run.settings)
      if (values.contains(key) && tells_apart(key, values)) run.label += ", " + key + "=" + value;
  }
}

}  // namespace

double StudiedRun::number(const std::string& key, double otherwise) const {
  const auto found = settings.find(key);
  return found == settings.end() ? otherwise : parse_number(found->second).value_or(otherwise);
}

Result<std::vector<StudiedRun>> find_runs(std::span<const fs::path> paths) {
  std::vector<StudiedRun> runs;
  std::vector<std::string> problems;
  for (const fs::path& path : paths)
    if (const Status status = add_runs(path, runs); !status) problems.push_back(status.error().message);
  if (!problems.empty()) return join_errors(problems);
  tell_apart(runs);
  return runs;
}

std::vector<std::string> labels_of(std::span<const StudiedRun> runs) {
  std::vector<std::string> labels;
  for (const StudiedRun& run : runs)
    if (std::find(labels.begin(), labels.end(), run.label) == labels.end()) labels.push_back(run.label);
  return labels;
}

}  // namespace carnot
