#include "carnot/core/config/aliases.h"

#include <algorithm>
#include <map>

namespace carnot {

std::span<const Alias> all_aliases() {
  static const std::vector<Alias> kAll = [] {
    std::vector<Alias> all(verl_aliases().begin(), verl_aliases().end());
    all.insert(all.end(), trl_aliases().begin(), trl_aliases().end());
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
      {"batch_size", "train.groups"},
      {"clip", "objective.clip_low"},
      {"clip_ratio", "objective.clip_low"},
      {"entropy_coeff", "objective.entropy_coefficient"},
      {"env", "env.name"},
      {"environment", "env.name"},
      {"eps_clip", "objective.clip_low"},
      {"epochs", "train.epochs"},
      {"grad_clip", "train.max_grad_norm"},
      {"groups", "train.groups"},
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
