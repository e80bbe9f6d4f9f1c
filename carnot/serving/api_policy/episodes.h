// serving/api_policy/episodes.h -- the tasks of an evaluation, played by a model behind an OpenAI-compatible server.
//
// What is in one running message with a policy of our own (a tool's result that continues the response) is the next
// user message here. The message's beginning that an environment wants (Opening::assistant_prefix) cannot be sent;
// where a response lacks it, the environment reads it with it. A stop string that ends a response is put back where it
// is a closing tag, since servers leave it out.
//
// Several trajectories are under way at once, each turn of them a call with a deadline on a worker thread
// (env/environment_workers.h). A server or an environment that fails or hangs ends its trajectory as InfraFailed; the
// others continue. A bug in an environment (CheckError) ends the evaluation.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/data/tree.h"
#include "carnot/core/env/environment.h"
#include "carnot/serving/openai/chat_endpoint.h"

namespace carnot {

struct EndpointEpisodeOptions {
  std::string model{};  ///< as the server names it
  double temperature = 1;
  double top_p = 1;
  int max_context_tokens = 4096;  ///< prompt and responses of a conversation, as the server counts them
  int max_response_tokens = 0;    ///< a turn; 0: the environment's own limit
  int max_turns = 0;              ///< 0: the environment's own limit
  std::string extra{};            ///< a JSON object that changes every request (RFC 7396); empty: none
};

/// What an episode has cost.
struct EndpointCost {
  std::int64_t answers = 0;  ///< of the model
  TokenUsage tokens{};       ///< as the server counts them
};

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
  /// A JSON object per trajectory, with its line break: uid, sibling, outcome, score, success, answer, measures,
  /// messages.
  std::vector<std::string> transcripts{};
  double seconds = 0;
};

/// The response with the closing tag that ended it, where one of `stop_strings` is a closing tag whose opening tag it
/// leaves open.
std::string with_closing_tag(std::string text, const std::vector<std::string>& stop_strings);

EndpointResult play_episodes(const std::shared_ptr<ChatEndpoint>& endpoint, std::span<const EndpointTask> tasks,
                             const EndpointRun& run, const EndpointEvents& events = {});

}  // namespace carnot
