// worlds/agent/server.h -- the HTTP side of all episodes: each has its own address.
//
//   POST /episode/ID/v1/chat/completions   a call of the policy; waits for its turn and its answer
//   GET  /episode/ID/v1/models             the policy, under the name "policy"
//   POST /episode/ID/reward                {"reward": 1, "success": true, "measures": {...}}, or a number
//   POST /episode                          for harnesses that are started elsewhere: waits for the next episode
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "carnot/http/server.h"
#include "carnot/worlds/agent/episode.h"

namespace carnot {

/// Where a harness finds its episode.
struct EpisodeAddress {
  std::string base_url{};  ///< of OpenAI's API
  std::string reward_url{};
};

class AgentServer {
 public:
  /// Listens on 127.0.0.1; port 0: any that is free.
  static Result<std::unique_ptr<AgentServer>> start(int port);
  ~AgentServer();

  /// From now on the episode has an address, that no one can guess; `offered`: the next POST /episode gets it, with the
  /// JSON text `task`. Any thread.
  EpisodeAddress open(const std::shared_ptr<AgentEpisode>& episode, const std::string& task, bool offered);

  /// Ends that. Any thread.
  void close(const EpisodeAddress& address);

  int port() const { return server_->port(); }

 private:
  AgentServer() = default;
  HttpReply answer(const HttpCall& call, const HttpConnection& connection);
  HttpReply asked(AgentEpisode& episode, const std::string& body, const HttpConnection& connection) const;
  HttpReply next_offer(const HttpConnection& connection);
  std::shared_ptr<AgentEpisode> find(const std::string& id);

  struct Offer {
    std::string id{};
    std::string text{};  ///< what the harness gets
  };

  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::map<std::string, std::weak_ptr<AgentEpisode>> episodes_{};
  std::deque<Offer> offers_{};
  bool stopping_ = false;
  std::unique_ptr<HttpServer> server_{};
};

}  // namespace carnot
