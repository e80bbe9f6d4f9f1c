#include "carnot/worlds/agent/episode.h"

#include <vector>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

constexpr std::chrono::milliseconds kPresenceSlice{100};  // between two looks at whether the harness is still there

}  // namespace

Result<EpisodeReward> read_reward(std::string_view text, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json(text, where));
  EpisodeReward reward;
  if (json.is_number()) {
    reward.reward = json.get<double>();
    return reward;
  }
  std::vector<std::string> problems;
  if (!json.is_object() || !json.contains("reward"))
    return Error{where + ": expected a number or an object with reward, found " + shown(json)};
  for (const auto& [key, value] : json.items()) {
    if (key == "reward" && value.is_number()) {
      reward.reward = value.get<double>();
    } else if (key == "success" && value.is_boolean()) {
      reward.success = value.get<bool>();
    } else if (key == "measures" && value.is_object()) {
      for (const auto& [name, measure] : value.items()) {
        if (!measure.is_number()) problems.push_back(where + ": measures." + name + ": expected a number");
        if (measure.is_number()) reward.measures[name] = measure.get<double>();
      }
    } else {
      problems.push_back(where + ": " + key + ": expected reward (a number), success (true or false) or measures (an " +
                         "object of numbers), found " + shown(value));
    }
  }
  if (!problems.empty()) return join_errors(problems);
  return reward;
}

std::optional<Message> AgentEpisode::ask(OpenAiRequest request, const std::function<bool()>& is_there) {
  const auto call = std::make_shared<Call>();
  call->request = std::move(request);
  std::unique_lock lock(mutex_);
  if (closed_) return std::nullopt;
  calls_.push_back(call);
  changed_.notify_all();
  while (!call->answer && !call->over) {
    changed_.wait_for(lock, kPresenceSlice);
    lock.unlock();
    const bool there = is_there();
    lock.lock();
    if (there) continue;
    std::erase(calls_, call);
    return std::nullopt;
  }
  return std::move(call->answer);
}

bool AgentEpisode::give_reward(EpisodeReward reward) {
  const std::lock_guard lock(mutex_);
  if (closed_ || reward_) return false;
  reward_ = std::move(reward);
  changed_.notify_all();
  return true;
}

void AgentEpisode::end(const std::string& why, std::optional<EpisodeReward> reward) {
  const std::lock_guard lock(mutex_);
  if (!reward_) reward_ = std::move(reward);
  end_ = why;
  give_up_calls();
}

std::optional<AgentEpisode::Event> AgentEpisode::next(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return !calls_.empty() || reward_ || end_; })) return std::nullopt;
  Event event;
  if (!calls_.empty()) {
    taken_ = event.call = calls_.front();
    calls_.pop_front();
  } else if (reward_) {
    event.reward = reward_;
  } else {
    event.end = end_;
  }
  return event;
}

void AgentEpisode::answer(Call& call, Message message) {
  const std::lock_guard lock(mutex_);
  call.answer = std::move(message);
  taken_.reset();
  changed_.notify_all();
}

void AgentEpisode::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  give_up_calls();
}

void AgentEpisode::give_up_calls() {
  if (taken_) calls_.push_back(taken_);
  for (const auto& call : calls_) call->over = true;
  calls_.clear();
  changed_.notify_all();
}

}  // namespace carnot
