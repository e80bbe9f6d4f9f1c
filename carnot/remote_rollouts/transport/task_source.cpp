#include "carnot/remote_rollouts/transport/task_source.h"

#include <algorithm>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "carnot/core/base/host_name.h"
#include "carnot/core/base/log.h"
#include "carnot/http/server.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kPause{100};       // before what is busy or away is asked again
constexpr milliseconds kLeaseTime{2000};  // for a request about a lease
constexpr std::size_t kMostPeers = 3;     // that are asked before the trainer is
constexpr seconds kLifetime{60};
constexpr seconds kBetweenAnnouncements{20};
constexpr int kUploads = 4;

/// As others reach a server that listens on `host`.
std::string reachable(const std::string& host) {
  if (host == "0.0.0.0" || host == "::") return host_name();
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

/// Workers that say they serve this file, in a random order.
std::vector<WorkerPeer> peers_with(const WorkerFile& file, const BrokerAddress& address, Broker& broker) {
  std::vector<WorkerPeer> peers;
  if (!broker.is_connected()) return peers;
  const auto values = broker.announced_below(address.peers(), file.sha256);
  if (!values) return peers;
  for (const std::string& value : values->value)
    if (auto peer = parse_peer(value)) peers.push_back(std::move(peer).value());
  std::ranges::shuffle(peers, std::mt19937(std::random_device{}()));
  return peers;
}

}  // namespace

/// Files of this worker, served and announced.
class TaskSource::PeerFiles {
 public:
  /// Listens; beyond loopback only with a key. `broker` must outlive it.
  static Result<std::unique_ptr<PeerFiles>> start(const PeerServerOptions& options, const BrokerAddress& address,
                                                  Broker& broker) {
    if (!is_loopback(options.host) && options.key.empty())
      return Error{"--serve: other machines reach " + options.host +
                   "; expected --key-env with the name of an environment variable that holds the trainer's key, or "
                   "127.0.0.1"};
    std::unique_ptr<PeerFiles> made(new PeerFiles(address, broker));
    auto server = HttpServer::start({.host = options.host,
                                     .port = options.port,
                                     .key = options.key,
                                     .certificate = options.certificate,
                                     .private_key = options.private_key},
                                    [files = &made->files_](const HttpCall& call, const HttpConnection&) -> HttpReply {
                                      if (call.method == "GET") return files->answer(call.path);
                                      return {.status = 404, .body = "nothing is there", .content_type = "text/plain"};
                                    });
    if (!server) return Error{"--serve: " + server.error().message};
    made->server_ = std::move(server).value();
    const std::string scheme = options.certificate.empty() ? "http://" : "https://";
    made->peer_ = {.place = this_place(),
                   .url = options.url.empty()
                              ? scheme + reachable(options.host) + ":" + std::to_string(made->server_->port())
                              : options.url};
    return made;
  }

  /// Withdraws what is announced, if the broker can be reached.
  ~PeerFiles() {
    if (!broker_.is_connected()) return;
    for (const auto& [kind, file] : served_) (void)broker_.withdraw(table_, key_of(file));
  }

  PeerFiles(const PeerFiles&) = delete;
  PeerFiles& operator=(const PeerFiles&) = delete;

  /// Serves this file, which is whole and checked, from now on instead of the last one of the same `kind`, and takes
  /// its name away.
  Status serve(const std::string& kind, const WorkerFile& file, const std::filesystem::path& path) {
    CARNOT_RETURN_IF_ERROR(files_.take(path, file));
    const WorkerFile last = std::exchange(served_[kind], file);
    if (!last.sha256.empty() && last != file) {
      files_.drop(last);
      if (broker_.is_connected()) (void)broker_.withdraw(table_, key_of(last));
    }
    next_ = {};
    keep_announced();
    return Done{};
  }

  /// Announces what is served once more, where it is time. REQUIRES: called at least every half minute or so.
  void keep_announced() {
    const auto now = std::chrono::steady_clock::now();
    if (served_.empty() || now < next_ || !broker_.is_connected()) return;
    for (const auto& [kind, file] : served_) {
      const auto announced = broker_.announce(table_, key_of(file), peer_json(peer_), kLifetime);
      if (!announced || !announced->reached) return;  // the next call tries again
    }
    next_ = now + kBetweenAnnouncements;
  }

  const std::string& url() const { return peer_.url; }

 private:
  PeerFiles(const BrokerAddress& address, Broker& broker)
      : table_(address.peers()), broker_(broker), id_(random_hexadecimal(16)), files_(kUploads) {}

  std::string key_of(const WorkerFile& file) const { return file.sha256 + "." + id_; }

  std::string table_;
  Broker& broker_;
  WorkerPeer peer_{};
  std::string id_;
  std::map<std::string, WorkerFile> served_{};  ///< by kind
  std::chrono::steady_clock::time_point next_{};
  ServedFiles files_;
  std::unique_ptr<HttpServer> server_{};  ///< last, since its threads use the files
};

Result<PeerServerOptions> parse_serving_address(std::string_view text, const std::string& where) {
  const std::string address(text);
  const auto url = parse_url("http://" + address);
  if (!url || address.find_first_of("/?#@%") != std::string::npos)
    return Error{where + ": " + address + ": expected an address of this machine, HOST or HOST:PORT"};
  const bool has_port = address.find(':', address.starts_with('[') ? address.find(']') : 0) != std::string::npos;
  return PeerServerOptions{.host = url->host, .port = has_port ? url->port : 0};
}

TaskSource::TaskSource(BrokerAddress address, std::string key, std::unique_ptr<Broker> broker)
    : address_(std::move(address)), key_(std::move(key)), broker_(std::move(broker)) {}
TaskSource::~TaskSource() = default;

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

Result<HttpAnswer> TaskSource::post(const Announcement& trainer, const std::string& path, std::string body,
                                    milliseconds time) const {
  CARNOT_ASSIGN_OR_RETURN(const auto url, parse_url(trainer.url));
  HttpHeaders headers = key_header(key_);
  headers.push_back({"Content-Type", "application/octet-stream"});
  auto answer =
      http_exchange({.method = "POST", .url = url.append(path), .headers = std::move(headers), .body = std::move(body)},
                    {.time = time});
  if (!answer) return HttpAnswer{.body = answer.error().message};
  if (answer->status == 401) return key_refusal(url);
  return answer;
}

Result<std::optional<WorkerTask>> TaskSource::next_task(const Announcement& trainer) {
  CARNOT_ASSIGN_OR_RETURN(const auto answer, post(trainer, "tasks/" + trainer.run + "/" + worker_, "", kLeaseTime));
  if (answer.is_success()) {
    CARNOT_ASSIGN_OR_RETURN(auto task, parse_task(answer.body));
    return std::optional(std::move(task));
  }
  if (answer.status != 503) std::this_thread::sleep_for(kPause);
  return std::optional<WorkerTask>();
}

bool TaskSource::extend(const Announcement& trainer, const WorkerTask& task) {
  const auto answer = post(trainer, "leases/" + task.run + "/" + task.key() + "/" + worker_, "", kLeaseTime);
  return answer && answer->status != 0;
}

void TaskSource::give_back(const Announcement& trainer, const WorkerTask& task) {
  (void)post(trainer, "returns/" + task.run + "/" + task.key() + "/" + worker_, "", kLeaseTime);
}

Result<WorkerAttempt> TaskSource::hand_in(const Announcement& trainer, const WorkerTask& task,
                                          const WorkerResult& result) {
  CARNOT_ASSIGN_OR_RETURN(const auto answer, post(trainer, "results/" + task.run + "/" + task.key(),
                                                  result_bytes(result), std::chrono::minutes(10)));
  if (answer.status == 0) return WorkerAttempt{.why_not = answer.body};
  if (answer.is_success() || answer.status == 410) return WorkerAttempt{.done = true};
  if (answer.status == 413 || answer.status == 422)
    return Error{"the trainer (" + trainer.place + ") refuses the result of task " + task.key() + ": " + answer.body};
  return WorkerAttempt{.why_not = "POST " + trainer.url + ": status " + std::to_string(answer.status)};
}

}  // namespace carnot
