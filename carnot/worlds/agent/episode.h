// worlds/agent/episode.h -- where an episode's two sides meet: the harness's calls on one, the environment on the
// other.
//
// The harness asks, and waits until the policy has spoken. The environment takes what comes next, one after the other:
// a call, the reward, or the end of the harness.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"
#include "carnot/serving/openai/request.h"

namespace carnot {

/// What a harness says at the end.
struct EpisodeReward {
  double reward = 0;
  std::optional<bool> success{};  ///< none: a reward above 0 is one
  std::map<std::string, double> measures{};
};

/// {"reward": 1, "success": true, "measures": {...}}, or the number alone. `where` names it in messages.
Result<EpisodeReward> read_reward(std::string_view text, const std::string& where);

class AgentEpisode {
 public:
  /// A call that waits for its answer.
  struct Call {
    OpenAiRequest request{};
    std::optional<Message> answer{};
    bool over = false;  ///< there will be no answer
  };

  /// What comes next; one of the three.
  struct Event {
    std::shared_ptr<Call> call{};
    std::optional<EpisodeReward> reward{};
    std::optional<std::string> end{};  ///< why nothing more will come
  };

  // The harness's side, on any thread.

  /// The policy's answer; empty if the episode is over, or `is_there` turned false.
  std::optional<Message> ask(OpenAiRequest request, const std::function<bool()>& is_there);
  /// False if the episode is over, or has its reward.
  bool give_reward(EpisodeReward reward);
  /// Calls that wait are given up; a reward that was given stays.
  void end(const std::string& why, std::optional<EpisodeReward> reward);

  // The environment's side, on one thread at a time.

  /// Waits for it; empty if nothing came in time.
  std::optional<Event> next(std::chrono::milliseconds patience);
  void answer(Call& call, Message message);
  /// The episode is over for the harness: calls, those that wait included, find no one.
  void close();

 private:
  void give_up_calls();

  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::deque<std::shared_ptr<Call>> calls_{};  ///< not taken yet
  std::shared_ptr<Call> taken_{};              ///< not answered yet
  std::optional<EpisodeReward> reward_{};
  std::optional<std::string> end_{};
  bool closed_ = false;
};

}  // namespace carnot
