// remote_rollouts/transport/broker.h -- a NATS server with JetStream: tables of values that are announced.
//
// The connection is kept: where the server goes away, calls say so, and the same calls work again once it is back. That
// it is away, and that it is back, is logged once each. A server that refuses (a wrong key, no JetStream) is an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"

namespace carnot {

struct BrokerOptions {
  std::string url{};          ///< nats://HOST:PORT, or tls://HOST:PORT
  std::string name{};         ///< of this client, in the server's lists and logs
  std::string credentials{};  ///< file with a JWT and its key, as `nsc` writes it; empty: none
  std::string user{};         ///< with `password`; empty: none
  std::string password{};
  std::string token{};
  std::string authority{};    ///< PEM file that the server's certificate is checked against; empty: the system's
  std::string certificate{};  ///< PEM file that this client shows; empty: none
  std::string private_key{};  ///< PEM file of that certificate's key
};

/// What a call brought: a value, or nothing since the server is away at the moment.
template <class T>
struct Reached {
  bool reached = false;
  T value{};
};

class Broker {
 public:
  /// Connects; where no server answers, tries again as long as `go_on` says so, then returns null. Any thread may then
  /// call the broker, one at a time.
  static Result<std::unique_ptr<Broker>> connect(const BrokerOptions& options, const std::function<bool()>& go_on);
  /// Why the server there refuses this client, or has no JetStream. A server that is away is no failure.
  static Status check(const BrokerOptions& options);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  /// Whether the server can be reached, as far as is known.
  bool is_connected();

  /// Sets the value `key` of the table `table`, which is made where it is not there. All values of a table that is made
  /// with a `lifetime` are forgotten that long after they were set; 0: never.
  Result<Reached<Done>> announce(const std::string& table, const std::string& key, std::string_view value,
                                 std::chrono::milliseconds lifetime = {});
  /// That value; empty if no one has announced it.
  Result<Reached<std::optional<std::string>>> announced(const std::string& table, const std::string& key);
  /// The values of all keys `prefix`.ANYTHING. REQUIRES: nothing of the prefix but letters, digits, '-' and '_'.
  Result<Reached<std::vector<std::string>>> announced_below(const std::string& table, const std::string& prefix);
  /// Takes the value back.
  Result<Reached<Done>> withdraw(const std::string& table, const std::string& key);

 private:
  struct Connection;
  explicit Broker(std::unique_ptr<Connection> connection);
  std::unique_ptr<Connection> connection_;
};

}  // namespace carnot
