// remote_rollouts/transport/broker_connection.h -- the NATS client's connection of a Broker. Internal to the room.
#pragma once

#include <nats/nats.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "carnot/remote_rollouts/transport/broker.h"

namespace carnot {

inline constexpr std::int64_t kAnswerWait = 5000;        ///< milliseconds
inline constexpr std::int64_t kNanoseconds = 1'000'000;  ///< of a millisecond

/// Deletes what the library made.
template <auto kDestroy>
struct Destroy {
  template <class T>
  void operator()(T* made) const {
    kDestroy(made);
  }
};
using OptionsPointer = std::unique_ptr<natsOptions, Destroy<natsOptions_Destroy>>;
using ConnectionPointer = std::unique_ptr<natsConnection, Destroy<natsConnection_Destroy>>;
using StreamsPointer = std::unique_ptr<jsCtx, Destroy<jsCtx_Destroy>>;
using SubscriptionPointer = std::unique_ptr<natsSubscription, Destroy<natsSubscription_Destroy>>;
using WatcherPointer = std::unique_ptr<kvWatcher, Destroy<kvWatcher_Destroy>>;
using TablePointer = std::unique_ptr<kvStore, Destroy<kvStore_Destroy>>;

struct Broker::Connection {
  BrokerOptions given;
  OptionsPointer options{};
  ConnectionPointer connection{};
  StreamsPointer streams{};
  std::map<std::string, TablePointer> tables{};
  std::map<std::string, SubscriptionPointer> subscriptions{};
  bool told_away = false;
  std::optional<std::chrono::steady_clock::time_point> refused_since{};  ///< without a call that went well in between

  bool is_up();
  /// What a call's status means. `code`: JetStream's own, 0 where it has none.
  Result<Reached<Done>> outcome(natsStatus status, jsErrCode code, const std::string& what);
  /// As one that is away, and an error once that has lasted: a server takes connections before its JetStream is up.
  Result<Reached<Done>> refused(std::string why);
  Reached<Done> reached();
  /// The outcome of a request to JetStream itself, which no one answers where it is not there.
  Result<Reached<Done>> request_outcome(natsStatus status, jsErrCode code, const std::string& what);
  static Result<std::unique_ptr<Connection>> with(const BrokerOptions& given);
  /// Tries once.
  Result<Reached<Done>> dial();
  Result<Reached<Done>> ask_for_streams();
  /// Null if it is not there; `status` says why. Made with this lifetime of its values, where one is given.
  kvStore* table(const std::string& name, const std::optional<std::chrono::milliseconds>& lifetime_to_make,
                 natsStatus& status);
};

}  // namespace carnot
