// remote_rollouts/transport/broker.h -- a NATS server with JetStream: a queue whose messages are leased, and values
// that are announced.
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

class Broker;

/// A message of a queue, for as long as its lease lasts. Who neither finishes nor extends it in time loses it: it goes
/// to another client.
class Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  /// Leaves the message to its lease.
  ~Lease();

  std::string_view data() const;

  void extend();     ///< the lease begins again
  void finish();     ///< takes the message off the queue; where the server is away, it comes again
  void give_back();  ///< another client gets it at once

 private:
  friend class Broker;
  struct Message;
  explicit Lease(std::unique_ptr<Message> message);
  std::unique_ptr<Message> message_;
};

class Broker {
 public:
  /// Connects; where no one answers, tries again as long as `go_on` says so. Null if it was asked
  /// to stop. Any thread may then call the broker, one at a time.
  static Result<std::unique_ptr<Broker>> connect(const BrokerOptions& options, const std::function<bool()>& go_on);
  /// Why the server there refuses this client, or has no JetStream. A server that is away is no failure.
  static Status check(const BrokerOptions& options);
  ~Broker();
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;

  /// Whether the server can be reached, as far as is known.
  bool is_connected();

  /// Makes the queue `name` where it is not there. A name has letters, digits, '-' and '_'.
  Result<Reached<Done>> make_queue(const std::string& name, std::chrono::milliseconds lease);
  /// The queue with all that is in it.
  Result<Reached<Done>> remove_queue(const std::string& name);
  /// Adds a message; within two minutes a second one of the same id is dropped by the server.
  Result<Reached<Done>> add(const std::string& queue, std::string_view data, const std::string& id);
  /// Messages that no one has finished, leased ones included; empty if there is no such queue.
  Result<Reached<std::optional<std::int64_t>>> size(const std::string& queue);
  /// The next message, if one comes within `patience`. REQUIRES: no earlier lease of this queue is held any more.
  Result<Reached<std::optional<Lease>>> lease(const std::string& queue, std::chrono::milliseconds patience);

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
