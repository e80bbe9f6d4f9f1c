#include "carnot/core/config/aliases.h"

#include <algorithm>
#include <map>

namespace carnot {

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
