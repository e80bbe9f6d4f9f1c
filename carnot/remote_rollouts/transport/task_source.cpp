#include "carnot/remote_rollouts/transport/task_source.h"

#include <thread>
#include <utility>

#include "carnot/core/base/log.h"

namespace carnot {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kPause{100};    // before busy ones are asked again
constexpr std::size_t kMostPeers = 3;  // that are asked before the trainer is

}  // namespace

Result<std::unique_ptr<TaskSource>> TaskSource::connect(const BrokerAddress& address, const BrokerOptions& options,
                                                        const std::string& key, const GoOn& go_on) {
  CARNOT_ASSIGN_OR_RETURN(auto broker, Broker::connect(options, go_on));
  if (!broker) return std::unique_ptr<TaskSource>();
  return std::unique_ptr<TaskSource>(new TaskSource(address, key, std::move(broker)));
}

Result<std::optional<Announcement>> TaskSource::trainer() {
  CARNOT_ASSIGN_OR_RETURN(const auto announced, broker_->announced(address_.table(), "trainer"));
  if (!announced.value) return std::optional<Announcement>();
  CARNOT_ASSIGN_OR_RETURN(auto trainer, parse_announcement(*announced.value));
  return std::optional(std::move(trainer));
}

Result<WorkerAttempt> TaskSource::fetch(const Announcement& trainer, const WorkerFile& file,
                                        const std::filesystem::path& path, const GoOn& go_on) {
  CARNOT_ASSIGN_OR_RETURN(const auto url, parse_url(trainer.url));
  return fetch_file(url, key_, file, path, go_on);
}

Status TaskSource::serve_to_peers(const PeerServerOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(auto started, PeerFiles::start(options, address_, *broker_));
  peer_files_ = std::move(started);
  return Done{};
}

void TaskSource::keep_announced() {
  if (peer_files_) peer_files_->keep_announced();
}

Result<WorkerAttempt> TaskSource::fetch_from_any(const Announcement& trainer, const WorkerFile& file,
                                                 const std::filesystem::path& path, const GoOn& go_on) {
  for (;; std::this_thread::sleep_for(kPause)) {
    if (fetch_from_peers(file, path, go_on)) return WorkerAttempt{.done = true};
    auto attempt = fetch(trainer, file, path, go_on);
    if (!attempt || !attempt->is_busy || !go_on()) return attempt;
  }
}

bool TaskSource::fetch_from_peers(const WorkerFile& file, const std::filesystem::path& path, const GoOn& go_on) {
  std::size_t asked = 0;
  for (const WorkerPeer& peer : peers_with(file, address_, *broker_)) {
    const auto url = parse_url(peer.url);
    const bool is_own = peer_files_ && peer_files_->url() == peer.url;
    if (!url || is_own || distrusted_.contains(peer.url)) continue;
    if (asked++ == kMostPeers || !go_on()) return false;
    const auto attempt = fetch_file(*url, key_, file, path, go_on);
    if (attempt && attempt->done) return true;
    if (attempt && !attempt->is_damaged) continue;
    log_warning(peer.place +
                (attempt ? " does not send what it says it has: " + attempt->why_not
                         : " at " + url->shown() + " refuses this worker's key") +
                "; it is no longer asked");
    distrusted_.insert(peer.url);
  }
  return false;
}

Status TaskSource::keep(const std::string& kind, const WorkerFile& file, const std::filesystem::path& path) {
  return peer_files_ ? peer_files_->serve(kind, file, path) : Status(Done{});
}

Result<std::optional<LeasedTask>> TaskSource::next_task(const std::string& run, milliseconds patience) {
  CARNOT_ASSIGN_OR_RETURN(auto leased, broker_->lease(address_.queue(), patience));
  if (!leased.value) return std::optional<LeasedTask>();
  auto task = parse_task(leased.value->data());
  if (!task) {
    log_warning(task.error().message + "; it is dropped");
    leased.value->finish();
    return std::optional<LeasedTask>();
  }
  if (task->run != run) {
    const auto now = trainer();
    if (now && *now && (*now)->run == task->run)  // the caller does not know yet
      leased.value->give_back();
    else
      leased.value->finish();
    return std::optional<LeasedTask>();
  }
  return std::optional(LeasedTask{.lease = std::move(*leased.value), .task = std::move(task).value()});
}

Result<WorkerAttempt> TaskSource::hand_in(const Announcement& trainer, const WorkerTask& task,
                                          const WorkerResult& result) {
  CARNOT_ASSIGN_OR_RETURN(const auto url, parse_url(trainer.url));
  HttpHeaders headers = key_header(key_);
  headers.push_back({"Content-Type", "application/octet-stream"});
  const auto answer = http_exchange({.method = "POST",
                                     .url = url.append("results/" + task.run + "/" + task.key()),
                                     .headers = std::move(headers),
                                     .body = result_bytes(result)},
                                    {.time = std::chrono::minutes(10)});
  if (!answer) return WorkerAttempt{.why_not = answer.error().message};
  if (answer->status == 401) return key_refusal(url);
  if (answer->status == 410) return WorkerAttempt{.done = true};
  if (answer->status == 413 || answer->status == 422)
    return Error{"the trainer (" + trainer.place + ") refuses the result of task " + task.key() + ": " + answer->body};
  if (!answer->is_success())
    return WorkerAttempt{.why_not = "POST " + url.shown() + ": status " + std::to_string(answer->status)};
  return WorkerAttempt{.done = true};
}

}  // namespace carnot
