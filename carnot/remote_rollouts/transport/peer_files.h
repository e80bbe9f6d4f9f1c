// remote_rollouts/transport/peer_files.h -- a worker that serves the trainer's files to other workers, and says so in
// the key-value store.
//
// A file is announced under its SHA-256 and an id of this worker, for a minute at a time: who dies is forgotten.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/http/server.h"
#include "carnot/remote_rollouts/transport/address.h"
#include "carnot/remote_rollouts/transport/broker.h"
#include "carnot/remote_rollouts/transport/messages.h"
#include "carnot/remote_rollouts/transport/served_files.h"

namespace carnot {

struct PeerServerOptions {
  std::string host{};         ///< that the HTTP server listens on
  int port = 0;               ///< 0: any that is free
  std::string url{};          ///< of that server, as others reach it; empty: this machine's name, or a loopback address
  std::string certificate{};  ///< PEM file; where set, the server speaks TLS
  std::string private_key{};  ///< PEM file of its key
  std::string key{};          ///< that requests need: the trainer's
};

/// Reads HOST or HOST:PORT. `where` is before messages.
Result<PeerServerOptions> parse_serving_address(std::string_view text, const std::string& where);

class PeerFiles {
 public:
  /// Listens; beyond loopback only with a key. `broker` must outlive it.
  static Result<std::unique_ptr<PeerFiles>> start(const PeerServerOptions& options, const BrokerAddress& address,
                                                  Broker& broker);
  /// Takes back what is announced, as far as the broker is there.
  ~PeerFiles();
  PeerFiles(const PeerFiles&) = delete;
  PeerFiles& operator=(const PeerFiles&) = delete;

  /// Serves this file, which is whole and checked, from now on instead of the last one of the same `kind`, and takes
  /// its name away.
  Status serve(const std::string& kind, const WorkerFile& file, const std::filesystem::path& path);

  /// Announces what is served once more, where it is time. REQUIRES: called at least every half minute or so.
  void keep_announced();

  const std::string& url() const { return peer_.url; }
  std::int64_t bytes_sent() const { return files_.bytes_sent(); }

 private:
  PeerFiles(const BrokerAddress& address, Broker& broker);
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

/// Workers that say they serve this file, in a random order.
std::vector<WorkerPeer> peers_with(const WorkerFile& file, const BrokerAddress& address, Broker& broker);

}  // namespace carnot
