// serving/api_policy/episodes.h -- the tasks of an evaluation, played by a model behind an OpenAI-compatible server.
//
// Several trajectories are under way at once, each turn of them a call with a deadline on a worker thread
// (env/environment_workers.h). A server or an environment that fails or hangs ends its trajectory as InfraFailed; the
// others go on. A bug in an environment (CheckError) ends it all.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/data/tree.h"
#include "carnot/core/env/environment.h"
#include "carnot/serving/api_policy/episode.h"

namespace carnot {

struct EndpointTask {
  std::string uid{};
  std::string environment{};  ///< name of its family, for messages
  std::int64_t task_index = 0;
  std::function<std::unique_ptr<Environment>()> make{};  ///< called on a worker thread
};

struct EndpointRun {
  EndpointEpisodeOptions episode{};
  int samples = 1;            ///< trajectories per task
  int concurrency = 8;        ///< trajectories at a time
  double turn_timeout = 240;  ///< seconds for a turn: the model's answer and the environment's
  std::uint64_t seed = 0;
};

struct EndpointEvents {
  std::function<void(std::int64_t ended)> on_progress{};  ///< trajectories that have ended; may be null
  std::function<bool()> go_on = [] { return true; };      ///< asked several times a second, on the caller's thread
};

struct EndpointResult {
  bool stopped = false;                 ///< go_on() said no: there are no groups
  std::vector<Group> groups{};          ///< in the order of the tasks; turns have no tokens
  std::vector<std::string> failures{};  ///< of the infrastructure, a sentence each: by task, then by trajectory
  EndpointCost cost{};                  ///< of all trajectories, failed ones as far as they came
  EndpointCost valid_cost{};            ///< of those that count
  /// A JSON object a trajectory, with its line break: uid, sibling, outcome, score, success, answer, measures,
  /// messages.
  std::vector<std::string> transcripts{};
  double seconds = 0;
};

EndpointResult play_episodes(const std::shared_ptr<ChatEndpoint>& endpoint, std::span<const EndpointTask> tasks,
                             const EndpointRun& run, const EndpointEvents& events = {});

}  // namespace carnot
