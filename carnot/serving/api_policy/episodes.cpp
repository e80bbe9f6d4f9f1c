#include "carnot/serving/api_policy/episodes.h"

#include "carnot/core/base/json.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/stopwatch.h"
#include "carnot/core/env/environment_workers.h"

namespace carnot {
namespace {

/// A trajectory, while it is played and afterwards.
struct Player {
  std::shared_ptr<EndpointEpisode> episode{};
  Tree tree{};
  std::string failure{};
};

OrderedJson message_line(const Message& message) {
  OrderedJson json{{"role", message.role}, {"content", message.content}};
  for (const ToolCall& call : message.tool_calls)
    json["tool_calls"].push_back(OrderedJson{{"name", call.name}, {"arguments", call.arguments}});
  return json;
}

std::string transcript_line(const std::string& uid, const Leaf& leaf, const EndpointEpisode& episode) {
  OrderedJson line{{"uid", uid},
                   {"sibling", leaf.sibling},
                   {"outcome", std::string(name_of(leaf.outcome))},
                   {"score", leaf.score},
                   {"success", leaf.success}};
  if (leaf.answer) line["answer"] = *leaf.answer;
  line["measures"] = leaf.measures;
  line["messages"] = OrderedJson::array();
  for (const Message& message : episode.transcript()) line["messages"].push_back(message_line(message));
  return line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

void add_cost(EndpointCost& sum, const EndpointCost& cost) {
  sum.answers += cost.answers;
  sum.tokens.prompt += cost.tokens.prompt;
  sum.tokens.completion += cost.tokens.completion;
}

class EpisodeTable {
 public:
  EpisodeTable(std::shared_ptr<ChatEndpoint> endpoint, std::span<const EndpointTask> tasks, const EndpointRun& run,
               const EndpointEvents& events)
      : endpoint_(std::move(endpoint)),
        tasks_(tasks),
        run_(run),
        events_(events),
        players_(tasks.size() * static_cast<std::size_t>(run.samples)),
        workers_(run.concurrency, run.turn_timeout) {}

  EndpointResult play() {
    const Stopwatch watch;
    EndpointResult result;
    while (ended_ < players_.size()) {
      if (!events_.go_on()) {
        result.stopped = true;
        return result;
      }
      while (next_ < players_.size() && workers_.pending() < run_.concurrency) start(next_++);
      for (const FinishedCall& call : workers_.collect(true)) on_call(static_cast<std::size_t>(call.tag), call);
    }
    collect(result);
    result.seconds = watch.seconds();
    return result;
  }

 private:
  const EndpointTask& task_of(std::size_t player) const {
    return tasks_[player / static_cast<std::size_t>(run_.samples)];
  }
  int sibling_of(std::size_t player) const { return static_cast<int>(player % static_cast<std::size_t>(run_.samples)); }
  std::string id_of(std::size_t player) const { return task_of(player).uid + "." + std::to_string(sibling_of(player)); }

  void start(std::size_t player) {
    const EndpointTask& task = task_of(player);
    const std::uint64_t seed = derive_seed(run_.seed, task.uid, static_cast<std::uint64_t>(sibling_of(player)));
    players_[player].episode = std::make_shared<EndpointEpisode>(task.make, run_.episode, seed);
    advance(player);
  }

  void advance(std::size_t player) {
    workers_.submit(static_cast<std::int64_t>(player),
                    [episode = players_[player].episode, endpoint = endpoint_] { episode->advance(*endpoint); });
  }

  void on_call(std::size_t number, const FinishedCall& call) {
    Player& player = players_[number];
    const bool returned = call.status == FinishedCall::Status::Returned;
    if (returned && !player.episode->ended()) return advance(number);
    if (!returned) player.failure = call.message;
    // What a call that hangs still writes must not be read.
    const bool readable = returned || call.status == FinishedCall::Status::Threw;
    if (!readable) player.episode = std::make_shared<EndpointEpisode>(nullptr, run_.episode, 0);
    player.tree = player.episode->tree(id_of(number), sibling_of(number));
    ++ended_;
    if (events_.on_progress) events_.on_progress(static_cast<std::int64_t>(ended_));
  }

  void collect(EndpointResult& result) const {
    for (std::size_t i = 0; i < players_.size(); ++i) {
      const Player& player = players_[i];
      const EndpointTask& task = task_of(i);
      if (sibling_of(i) == 0)
        result.groups.push_back({.uid = task.uid, .task_index = task.task_index, .seed = run_.seed});
      Group& group = result.groups.back();
      if (group.info.empty()) group.info = player.episode->info();
      if (group.ground_truth.empty()) group.ground_truth = player.episode->ground_truth();
      add_cost(result.cost, player.episode->cost());
      if (player.tree.leaves.front().valid()) add_cost(result.valid_cost, player.episode->cost());
      result.transcripts.push_back(transcript_line(task.uid, player.tree.leaves.front(), *player.episode));
      if (!player.failure.empty()) result.failures.push_back(sentence(i, player));
      group.trees.push_back(player.tree);
    }
  }

  std::string sentence(std::size_t number, const Player& player) const {
    const EndpointTask& task = task_of(number);
    return task.uid + (task.environment.empty() ? "" : " (" + task.environment + ")") + ", trajectory " +
           std::to_string(sibling_of(number)) + ": " + player.failure;
  }

  std::shared_ptr<ChatEndpoint> endpoint_;
  std::span<const EndpointTask> tasks_;
  const EndpointRun& run_;
  const EndpointEvents& events_;
  std::vector<Player> players_;  // by task, then by sibling
  EnvironmentWorkers workers_;
  std::size_t next_ = 0;
  std::size_t ended_ = 0;
};

}  // namespace

EndpointResult play_episodes(const std::shared_ptr<ChatEndpoint>& endpoint, std::span<const EndpointTask> tasks,
                             const EndpointRun& run, const EndpointEvents& events) {
  return EpisodeTable(endpoint, tasks, run, events).play();
}

}  // namespace carnot
