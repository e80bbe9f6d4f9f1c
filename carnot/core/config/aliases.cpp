#include "carnot/core/config/aliases.h"

#include <algorithm>
#include <map>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"

namespace carnot {

extern const std::string_view kVerlKeys, kTrlKeys;  // verl_keys.txt, trl_keys.txt

namespace {

std::vector<std::string_view> parts_of(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(between); end != text.npos; end = text.find(between)) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + between.size());
  }
  parts.push_back(text);
  return parts;
}

/// Takes `word` off the front of `text`, if it is there.
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// One column of a row after the first, as aliases.h describes them.
void read_column(Alias& alias, std::string_view column) {
  if (take(column, "= ")) {
    alias.ours = parts_of(column, ", ");
  } else if (take(column, "ignored: ")) {
    alias.note = column;
  } else if (take(column, "refused: ")) {
    alias.advice = column;
  } else if (take(column, "in ")) {
    alias.environment = column;
  } else if (take(column, "divides ")) {
    alias.divides = column;
  } else if (take(column, "after ")) {
    alias.appends = column;
  } else if (column == "weakest" || column == "switch") {
    alias.rank = column == "switch" ? AliasRank::Switch : AliasRank::Default;
  } else {
    const std::size_t arrow = column.find(" ->");
    CARNOT_CHECK(arrow != column.npos, std::string(column));
    const std::string_view ours = column.substr(arrow + 3);
    alias.words.emplace_back(column.substr(0, arrow), ours.empty() ? ours : ours.substr(1));
  }
}

std::vector<Alias> read_table(std::string_view text) {
  std::vector<Alias> table;
  for (const std::string_view line : split_lines(text)) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto columns = parts_of(line, " | ");
    Alias& alias = table.emplace_back(Alias{.theirs = columns.front()});
    for (std::size_t i = 1; i < columns.size(); ++i) read_column(alias, columns[i]);
  }
  return table;
}

}  // namespace

std::span<const Alias> verl_aliases() {
  static const std::vector<Alias> kTable = read_table(kVerlKeys);
  return kTable;
}

std::span<const Alias> trl_aliases() {
  static const std::vector<Alias> kTable = read_table(kTrlKeys);
  return kTable;
}

std::span<const Alias> former_keys() {
  static const std::vector<Alias> kKeys = {
      {.theirs = "train.groups", .ours = {"train.groups_per_step"}, .former = true},
      {.theirs = "train.reduce", .ours = {"train.gradient_reduction"}, .former = true},
      {.theirs = "rollout.score_tokens", .ours = {"rollout.log_prob_tokens"}, .former = true},
      {.theirs = "rollout.measure", .ours = {"rollout.extra_signals"}, .former = true},
      {.theirs = "rollout.plane", .ours = {"rollout.workers"}, .former = true},
      {.theirs = "rollout.plane_listen", .ours = {"rollout.workers_listen"}, .former = true},
      {.theirs = "rollout.plane_port", .ours = {"rollout.workers_port"}, .former = true},
      {.theirs = "rollout.plane_url", .ours = {"rollout.workers_url"}, .former = true},
      {.theirs = "rollout.plane_key_env", .ours = {"rollout.workers_key_env"}, .former = true},
      {.theirs = "rollout.plane_credentials", .ours = {"rollout.workers_credentials"}, .former = true},
      {.theirs = "rollout.plane_authority", .ours = {"rollout.workers_authority"}, .former = true},
      {.theirs = "rollout.plane_certificate", .ours = {"rollout.workers_certificate"}, .former = true},
      {.theirs = "rollout.plane_private_key", .ours = {"rollout.workers_private_key"}, .former = true},
      {.theirs = "rollout.plane_task_groups", .ours = {"rollout.workers_task_groups"}, .former = true},
      {.theirs = "rollout.plane_lease_seconds", .ours = {"rollout.workers_lease_seconds"}, .former = true},
      {.theirs = "rollout.plane_uploads", .ours = {"rollout.workers_uploads"}, .former = true},
  };
  return kKeys;
}

std::span<const Alias> all_aliases() {
  static const std::vector<Alias> kAll = [] {
    std::vector<Alias> all(verl_aliases().begin(), verl_aliases().end());
    all.insert(all.end(), trl_aliases().begin(), trl_aliases().end());
    all.insert(all.end(), former_keys().begin(), former_keys().end());
    return all;
  }();
  return kAll;
}

const Alias* find_alias(std::span<const Alias> aliases, std::string_view key) {
  const auto stands_for = [key](const Alias& alias) {
    const bool is_prefix = alias.theirs.ends_with("*");
    return is_prefix ? key.starts_with(alias.theirs.substr(0, alias.theirs.size() - 1)) : key == alias.theirs;
  };
  const auto found = std::find_if(aliases.begin(), aliases.end(), stands_for);
  return found == aliases.end() ? nullptr : &*found;
}

std::string_view familiar_key(std::string_view word) {
  static const std::map<std::string_view, std::string_view> kKeys = {
      {"adv_estimator", "method.name"},
      {"advantage_estimator", "method.name"},
      {"algorithm", "method.name"},
      {"batch_size", "train.groups_per_step"},
      {"clip", "objective.clip_low"},
      {"clip_ratio", "objective.clip_low"},
      {"entropy_coeff", "objective.entropy_coefficient"},
      {"env", "env.name"},
      {"environment", "env.name"},
      {"eps_clip", "objective.clip_low"},
      {"epochs", "train.epochs"},
      {"grad_clip", "train.max_grad_norm"},
      {"groups", "train.groups_per_step"},
      {"group_size", "rollout.group_size"},
      {"kl_coef", "objective.kl_coefficient"},
      {"lora_rank", "lora.rank"},
      {"lr", "train.learning_rate"},
      {"max_new_tokens", "rollout.max_response_tokens"},
      {"max_tokens", "rollout.max_response_tokens"},
      {"model", "model.path"},
      {"n", "rollout.group_size"},
      {"output", "run_folder"},
      {"save_freq", "train.save_every"},
      {"steps", "train.steps"},
      {"test_freq", "eval.every"},
      {"wd", "train.weight_decay"},
  };
  if (const auto found = kKeys.find(word); found != kKeys.end()) return found->second;
  const Alias* trl = find_alias(trl_aliases(), word);
  return trl == nullptr || trl->ours.empty() ? std::string_view() : trl->ours.front();
}

}  // namespace carnot
