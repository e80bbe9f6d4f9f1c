#include "carnot/remote_rollouts/transport/peer_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "carnot/core/base/log.h"

namespace carnot {
namespace {

using std::chrono::seconds;

constexpr seconds kLifetime{60};
constexpr seconds kBetweenAnnouncements{20};
constexpr int kUploads = 4;

std::string random_id() {
  std::random_device device;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string id;
  while (id.size() < 16) id += kDigits[device() % 16];
  return id;
}

/// As others reach a server that listens on `host`.
std::string reachable(const std::string& host) {
  std::array<char, 256> name{};
  const bool is_any = host == "0.0.0.0" || host == "::";
  if (is_any && ::gethostname(name.data(), name.size() - 1) == 0) return name.data();
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

Result<PeerServerOptions> parse_serving_address(std::string_view text, const std::string& where) {
  const std::string address(text);
  const auto url = parse_url("http://" + address);
  if (!url || address.find_first_of("/?#@%") != std::string::npos)
    return Error{where + ": " + address + ": expected an address of this machine, HOST or HOST:PORT"};
  const bool has_port = address.find(':', address.starts_with('[') ? address.find(']') : 0) != std::string::npos;
  return PeerServerOptions{.host = url->host, .port = has_port ? url->port : 0};
}

PeerFiles::PeerFiles(const BrokerAddress& address, Broker& broker)
    : table_(address.peers()), broker_(broker), id_(random_id()), files_(kUploads) {}

Result<std::unique_ptr<PeerFiles>> PeerFiles::start(const PeerServerOptions& options, const BrokerAddress& address,
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

PeerFiles::~PeerFiles() {
  if (!broker_.is_connected()) return;
  for (const auto& [kind, file] : served_) (void)broker_.withdraw(table_, key_of(file));
}

Status PeerFiles::serve(const std::string& kind, const WorkerFile& file, const std::filesystem::path& path) {
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

void PeerFiles::keep_announced() {
  const auto now = std::chrono::steady_clock::now();
  if (served_.empty() || now < next_ || !broker_.is_connected()) return;
  for (const auto& [kind, file] : served_) {
    const auto announced = broker_.announce(table_, key_of(file), peer_json(peer_), kLifetime);
    if (!announced || !announced->reached) return;  // the next call tries again
  }
  next_ = now + kBetweenAnnouncements;
}

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

}  // namespace carnot
