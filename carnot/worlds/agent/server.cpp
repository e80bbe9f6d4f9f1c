#include "carnot/worlds/agent/server.h"

#include <cstdio>
#include <random>

#include "carnot/core/base/json.h"
#include "carnot/serving/openai/answer.h"
#include "carnot/worlds/agent/conversation.h"

namespace carnot {
namespace {

constexpr std::chrono::milliseconds kOfferSlice{100};
constexpr int kOfferSlices = 300;  // 30 s, then the harness is asked to try again
constexpr int kMostConnections = 1024;
const std::string kPolicy = "policy";
const std::string kEpisodes = "/episode/";

HttpReply refused(int status, const std::string& message) {
  return {.status = status, .body = error_answer(status, message)};
}

std::string new_id() {
  std::random_device device;
  char text[33];
  std::snprintf(text, sizeof text, "%08x%08x%08x%08x", device(), device(), device(), device());
  return text;
}

std::string id_of(const EpisodeAddress& address) {
  const std::size_t begin = address.base_url.find(kEpisodes) + kEpisodes.size();
  return address.base_url.substr(begin, address.base_url.find('/', begin) - begin);
}

/// A message as the answer to a request, whole or streamed.
HttpReply reply_of(const OpenAiRequest& request, const Message& message) {
  AnsweredChoice choice{.text = message.content,
                        .tool_calls = message.tool_calls,
                        .finish_reason = message.tool_calls.empty() ? "stop" : "tool_calls"};
  const AnswerHead head{.id = "chatcmpl-" + new_id(), .model = request.model.empty() ? kPolicy : request.model};
  if (!request.stream) return {.body = whole_answer(request, head, {&choice, 1}, {}, {})};
  std::string events = opening_event(request, head, 0, {});
  const std::string finish = std::exchange(choice.finish_reason, "");
  events += choice_event(request, head, choice) + choice_event(request, head, {.finish_reason = finish});
  if (request.include_usage) events += usage_event(request, head, {});
  return {.body = events + std::string(kLastEvent), .content_type = "text/event-stream"};
}

}  // namespace

Result<std::unique_ptr<AgentServer>> AgentServer::start(int port) {
  std::unique_ptr<AgentServer> made(new AgentServer);
  auto server = HttpServer::start(
      {.port = port,
       .max_connections = kMostConnections,
       .error_body = [](int status, const std::string& message) { return error_answer(status, message); }},
      [server = made.get()](const HttpCall& call, const HttpConnection& connection) {
        return server->answer(call, connection);
      });
  if (!server) return server.error();
  made->server_ = std::move(server).value();
  return made;
}

AgentServer::~AgentServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [id, known] : episodes_)
      if (const auto episode = known.lock()) episode->close();
  }
  server_.reset();
}

EpisodeAddress AgentServer::open(const std::shared_ptr<AgentEpisode>& episode, const std::string& task, bool offered) {
  const std::string id = new_id();
  const std::string url = "http://127.0.0.1:" + std::to_string(port()) + kEpisodes + id;
  const EpisodeAddress address{.base_url = url + "/v1", .reward_url = url + "/reward"};
  const std::lock_guard lock(mutex_);
  episodes_[id] = episode;
  if (!offered) return address;
  OrderedJson offer = parse_json_object<OrderedJson>(task, "the task").value();
  offer["base_url"] = address.base_url;
  offer["reward_url"] = address.reward_url;
  offers_.push_back({id, offer.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)});
  changed_.notify_all();
  return address;
}

void AgentServer::close(const EpisodeAddress& address) {
  const std::string id = id_of(address);
  const std::lock_guard lock(mutex_);
  if (const auto found = episodes_.find(id); found != episodes_.end()) {
    if (const auto episode = found->second.lock()) episode->close();
    episodes_.erase(found);
  }
  std::erase_if(offers_, [&](const Offer& offer) { return offer.id == id; });
}

std::shared_ptr<AgentEpisode> AgentServer::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found = episodes_.find(id);
  return found == episodes_.end() ? nullptr : found->second.lock();
}

HttpReply AgentServer::answer(const HttpCall& call, const HttpConnection& connection) {
  const std::string usual = "expected POST .../v1/chat/completions or .../reward at an episode's address";
  if (call.method == "POST" && call.path == "/episode") return next_offer(connection);
  if (!call.path.starts_with(kEpisodes)) return refused(404, usual);
  const std::size_t end = call.path.find('/', kEpisodes.size());
  const auto episode = find(call.path.substr(kEpisodes.size(), end - kEpisodes.size()));
  if (!episode) return refused(410, "the episode is over");
  const std::string place = end == std::string::npos ? "" : call.path.substr(end);
  if (call.method == "GET" && place == "/v1/models") return {.body = models_answer(kPolicy, 0, 0)};
  if (call.method != "POST") return refused(404, usual);
  if (place == "/v1/chat/completions") return asked(*episode, call.body, connection);
  if (place != "/reward") return refused(404, usual);
  auto reward = read_reward(call.body, "the reward");
  if (!reward) return refused(400, reward.error().message);
  if (!episode->give_reward(std::move(reward).value())) return refused(409, "the episode is over, or has its reward");
  return {.body = R"({"ok":true})"};
}

HttpReply AgentServer::asked(AgentEpisode& episode, const std::string& body, const HttpConnection& connection) const {
  ReadRequest read = read_chat_request(body);
  if (const auto* problems = std::get_if<std::vector<FieldProblem>>(&read))
    return {.status = 400, .body = error_answer(*problems)};
  const auto request = std::get<OpenAiRequest>(std::move(read));
  if (const Status status = check_call(request); !status) return refused(400, status.error().message);
  const auto message = episode.ask(request, [&] { return connection.is_open(); });
  return message ? reply_of(request, *message) : refused(410, "the episode is over");
}

HttpReply AgentServer::next_offer(const HttpConnection& connection) {
  std::unique_lock lock(mutex_);
  for (int slice = 0; offers_.empty() && slice < kOfferSlices && !connection.may_have_left() && !stopping_; ++slice)
    changed_.wait_for(lock, kOfferSlice);
  if (offers_.empty() || connection.may_have_left()) return refused(503, "there is no episode now; ask again");
  HttpReply reply{.body = std::move(offers_.front().text)};
  offers_.pop_front();
  return reply;
}

}  // namespace carnot
