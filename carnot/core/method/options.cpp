#include "carnot/core/method/options.h"

namespace carnot {

void reward_section(FieldVisitor& visit, RewardOptions& reward) {
  section(visit, "reward", reward, "shaping of rewards before any credit");
}

void MethodKeys::preset(std::span<const PresetEntry> only) {
  Preset chosen = only.front().preset;
  preset(only, chosen, [] {});
}

void MethodKeys::reward(RewardOptions& reward, RewardsRead read) {
  reward_section(visit, reward);
  unread_.add(reward.unread_keys(read), "reward");
}

std::string_view name_of(Preset preset) {
  switch (preset) {
    case Preset::Carnot: return "carnot";
    case Preset::Paper: return "paper";
    case Preset::Code: return "code";
    case Preset::Readme: return "readme";
    case Preset::Reported: return "reported";
  }
  return "";
}

}  // namespace carnot
