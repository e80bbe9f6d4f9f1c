// remote_rollouts/transport/address.h -- where trainer and workers meet: a NATS server, and a name on it.
#pragma once

#include <string>
#include <string_view>

#include "carnot/core/base/result.h"
#include "carnot/remote_rollouts/transport/broker.h"

namespace carnot {

struct BrokerAddress {
  std::string server{};         ///< nats://HOST:PORT or tls://HOST:PORT
  std::string name = "carnot";  ///< keeps the trainers of one server apart

  std::string table() const { return name + "-trainer"; }
  std::string peers() const { return name + "-peers"; }
  /// As a user writes it.
  std::string text() const { return name == "carnot" ? server : server + "/" + name; }
};

/// Reads nats://HOST[:PORT][/NAME], or tls://. Refuses user and password: they would be in recipes and logs. `where`
/// is before messages.
Result<BrokerAddress> parse_broker_address(std::string_view text, const std::string& where);

/// The keys to a NATS server: a file, and what the environment's variables CARNOT_NATS_USER, CARNOT_NATS_PASSWORD and
/// CARNOT_NATS_TOKEN hold.
struct BrokerKeys {
  std::string credentials{};
  std::string authority{};
  std::string certificate{};
  std::string private_key{};
};
Result<BrokerOptions> broker_options(const BrokerAddress& address, const BrokerKeys& keys, const std::string& client);

}  // namespace carnot
