#include "carnot/remote_rollouts/transport/broker.h"

#include <thread>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"
#include "carnot/remote_rollouts/transport/broker_connection.h"

namespace carnot {
namespace {

using std::chrono::milliseconds;

constexpr const char* kConsumer = "workers";
constexpr std::int64_t kMostLeases = 100'000;

}  // namespace

struct Lease::Message {
  explicit Message(natsMsg* taken) : message(taken) {}
  ~Message() { natsMsg_Destroy(message); }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;

  natsMsg* message;
};

Lease::Lease(std::unique_ptr<Message> message) : message_(std::move(message)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

std::string_view Lease::data() const {
  return {natsMsg_GetData(message_->message), static_cast<std::size_t>(natsMsg_GetDataLength(message_->message))};
}

void Lease::extend() { (void)natsMsg_InProgress(message_->message, nullptr); }
void Lease::finish() {
  jsErrCode ignored{};
  (void)natsMsg_AckSync(message_->message, nullptr, &ignored);
}
void Lease::give_back() { (void)natsMsg_Nak(message_->message, nullptr); }

Broker::Broker(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Broker::~Broker() = default;

Result<std::unique_ptr<Broker>> Broker::connect(const BrokerOptions& given, const std::function<bool()>& go_on) {
  auto made = Connection::with(given);
  if (!made) return made.error();
  Connection& connection = **made;
  for (bool warned = false;; std::this_thread::sleep_for(milliseconds(500))) {
    if (!go_on()) return std::unique_ptr<Broker>();
    CARNOT_ASSIGN_OR_RETURN(const auto dialed, connection.dial());
    if (dialed.reached) break;
    if (!warned) log_warning(given.url + ": no NATS server answers there; waiting for one (nats-server -js)");
    warned = true;
  }
  for (;; std::this_thread::sleep_for(milliseconds(200))) {
    if (!go_on()) return std::unique_ptr<Broker>();
    CARNOT_ASSIGN_OR_RETURN(const auto known, connection.ask_for_streams());
    if (known.reached) return std::unique_ptr<Broker>(new Broker(std::move(made).value()));
  }
}

Status Broker::check(const BrokerOptions& given) {
  const auto made = Connection::with(given);
  if (!made) return made.error();
  Connection& connection = **made;
  CARNOT_ASSIGN_OR_RETURN(const auto dialed, connection.dial());
  if (!dialed.reached) return Done{};
  for (;; std::this_thread::sleep_for(milliseconds(200))) {
    CARNOT_ASSIGN_OR_RETURN(const auto known, connection.ask_for_streams());
    if (known.reached || !connection.is_up()) return Done{};
  }
}

bool Broker::is_connected() { return connection_->is_up(); }

Result<Reached<Done>> Broker::make_queue(const std::string& name, milliseconds lease) {
  jsStreamConfig stream;
  jsStreamConfig_Init(&stream);
  const std::string subject = "carnot." + name;
  const char* subjects[] = {subject.c_str()};
  stream.Name = name.c_str();
  stream.Subjects = subjects;
  stream.SubjectsLen = 1;
  stream.Retention = js_WorkQueuePolicy;
  stream.Storage = js_FileStorage;
  jsErrCode code{};
  natsStatus status = js_AddStream(nullptr, connection_->streams.get(), &stream, nullptr, &code);
  if (status == NATS_OK) {
    jsConsumerConfig consumer;
    jsConsumerConfig_Init(&consumer);
    consumer.Durable = kConsumer;
    consumer.AckPolicy = js_AckExplicit;
    consumer.AckWait = lease.count() * kNanoseconds;
    consumer.MaxDeliver = -1;
    consumer.MaxAckPending = kMostLeases;
    status = js_AddConsumer(nullptr, connection_->streams.get(), name.c_str(), &consumer, nullptr, &code);
  }
  return connection_->request_outcome(status, code, "making the queue " + name);
}

Result<Reached<Done>> Broker::remove_queue(const std::string& name) {
  jsErrCode code{};
  connection_->subscriptions.erase(name);
  const natsStatus status = js_DeleteStream(connection_->streams.get(), name.c_str(), nullptr, &code);
  if (code == JSStreamNotFoundErr || status == NATS_NOT_FOUND) return connection_->reached();
  return connection_->request_outcome(status, code, "removing the queue " + name);
}

Result<Reached<Done>> Broker::add(const std::string& queue, std::string_view data, const std::string& id) {
  jsPubOptions options;
  jsPubOptions_Init(&options);
  options.MsgId = id.c_str();
  jsErrCode code{};
  const std::string subject = "carnot." + queue;
  const natsStatus status = js_Publish(nullptr, connection_->streams.get(), subject.c_str(), data.data(),
                                       static_cast<int>(data.size()), &options, &code);
  return connection_->outcome(status, code, "adding to the queue " + queue);
}

Result<Reached<std::optional<std::int64_t>>> Broker::size(const std::string& queue) {
  using Size = Reached<std::optional<std::int64_t>>;
  jsErrCode code{};
  jsStreamInfo* info = nullptr;
  const natsStatus status = js_GetStreamInfo(&info, connection_->streams.get(), queue.c_str(), nullptr, &code);
  if (status == NATS_OK) {
    const auto messages = static_cast<std::int64_t>(info->State.Msgs);
    jsStreamInfo_Destroy(info);
    connection_->reached();
    return Size{.reached = true, .value = messages};
  }
  if (code == JSStreamNotFoundErr || status == NATS_NOT_FOUND) {
    connection_->reached();
    return Size{.reached = true};
  }
  const auto why = connection_->request_outcome(status, code, "looking at the queue " + queue);
  return why ? Result<Size>(Size{}) : why.error();
}

Result<Reached<std::optional<Lease>>> Broker::lease(const std::string& queue, milliseconds patience) {
  using Leased = Reached<std::optional<Lease>>;
  auto& subscriptions = connection_->subscriptions;
  jsErrCode code{};
  const auto nothing = [&](natsStatus status, const std::string& what) -> Result<Leased> {
    subscriptions.erase(queue);
    CARNOT_RETURN_IF_ERROR(connection_->outcome(status, code, what));
    return Leased{};
  };
  if (!connection_->is_up()) return nothing(NATS_CONNECTION_DISCONNECTED, "waiting for a message");
  if (!subscriptions.contains(queue)) {
    jsSubOptions options;
    jsSubOptions_Init(&options);
    options.Stream = queue.c_str();
    options.Consumer = kConsumer;
    options.ManualAck = true;
    natsSubscription* made = nullptr;
    const std::string subject = "carnot." + queue;
    const natsStatus status =
        js_PullSubscribe(&made, connection_->streams.get(), subject.c_str(), kConsumer, nullptr, &options, &code);
    if (status == NATS_NOT_FOUND || code == JSStreamNotFoundErr || code == JSConsumerNotFoundErr)
      return Leased{.reached = true, .value = std::nullopt};
    if (status != NATS_OK) return nothing(status, "waiting for messages of the queue " + queue);
    subscriptions.emplace(queue, SubscriptionPointer(made));
  }
  natsMsgList list{};
  const natsStatus status = natsSubscription_Fetch(&list, subscriptions.at(queue).get(), 1,
                                                   std::max<std::int64_t>(1, patience.count()), &code);
  if (status == NATS_TIMEOUT) return Leased{.reached = true, .value = std::nullopt};
  // The queue may have been made again: the next call looks for it again.
  if (status == NATS_NOT_FOUND || code == JSStreamNotFoundErr || code == JSConsumerNotFoundErr) {
    subscriptions.erase(queue);
    return Leased{.reached = true, .value = std::nullopt};
  }
  // So does a server say that ends a wait since the queue is removed or itself stops.
  if (status != NATS_OK) return nothing(NATS_TIMEOUT, "waiting for messages of the queue " + queue);
  CARNOT_CHECK(list.Count == 1, "one message was asked for");
  auto message = std::make_unique<Lease::Message>(list.Msgs[0]);
  list.Msgs[0] = nullptr;
  natsMsgList_Destroy(&list);
  return Leased{.reached = true, .value = Lease(std::move(message))};
}

Result<Reached<Done>> Broker::announce(const std::string& table, const std::string& key, std::string_view value,
                                       milliseconds lifetime) {
  natsStatus status = NATS_OK;
  kvStore* store = connection_->table(table, lifetime, status);
  if (store == nullptr) return connection_->request_outcome(status, {}, "opening the table " + table);
  status = kvStore_Put(nullptr, store, key.c_str(), value.data(), static_cast<int>(value.size()));
  if (status == NATS_NO_RESPONDERS ||
      status == NATS_NOT_FOUND) {  // a server that lost its data: the next call makes it
    connection_->tables.erase(table);
    return Reached<Done>{};
  }
  return connection_->outcome(status, {}, "announcing in the table " + table);
}

Result<Reached<std::optional<std::string>>> Broker::announced(const std::string& table, const std::string& key) {
  using Value = Reached<std::optional<std::string>>;
  natsStatus status = NATS_OK;
  kvStore* store = connection_->table(table, std::nullopt, status);
  kvEntry* entry = nullptr;
  if (store != nullptr) status = kvStore_Get(&entry, store, key.c_str());
  if (status == NATS_OK) {
    std::string value(static_cast<const char*>(kvEntry_Value(entry)),
                      static_cast<std::size_t>(kvEntry_ValueLen(entry)));
    kvEntry_Destroy(entry);
    connection_->reached();
    return Value{.reached = true, .value = std::move(value)};
  }
  if (status == NATS_NOT_FOUND) {
    connection_->reached();
    return Value{.reached = true};
  }
  // A server that lost its data does not answer for a table that it had: the next call looks for the table first.
  connection_->tables.erase(table);
  const auto why = store == nullptr ? connection_->request_outcome(status, {}, "opening the table " + table)
                                    : connection_->outcome(status, {}, "reading the table " + table);
  return why ? Result<Value>(Value{}) : why.error();
}

Result<Reached<std::vector<std::string>>> Broker::announced_below(const std::string& table, const std::string& prefix) {
  using Values = Reached<std::vector<std::string>>;
  natsStatus status = NATS_OK;
  kvStore* store = connection_->table(table, std::nullopt, status);
  if (store == nullptr && status == NATS_NOT_FOUND) {
    connection_->reached();
    return Values{.reached = true};
  }
  kvWatchOptions options;
  kvWatchOptions_Init(&options);
  options.IgnoreDeletes = true;
  kvWatcher* made = nullptr;
  const std::string keys = prefix + ".*";
  if (store != nullptr) status = kvStore_Watch(&made, store, keys.c_str(), &options);
  const WatcherPointer watcher(made);
  Values values{.reached = true};
  while (status == NATS_OK) {
    kvEntry* entry = nullptr;
    status = kvWatcher_Next(&entry, made, kAnswerWait);
    if (status != NATS_OK) break;
    if (entry == nullptr) {  // no more for now
      connection_->reached();
      return values;
    }
    values.value.emplace_back(static_cast<const char*>(kvEntry_Value(entry)),
                              static_cast<std::size_t>(kvEntry_ValueLen(entry)));
    kvEntry_Destroy(entry);
  }
  connection_->tables.erase(table);
  // A server that lost its data does not know the table: the next call looks for it first.
  const auto why =
      connection_->outcome(status == NATS_NOT_FOUND ? NATS_TIMEOUT : status, {}, "reading the table " + table);
  return why ? Result<Values>(Values{}) : why.error();
}

Result<Reached<Done>> Broker::withdraw(const std::string& table, const std::string& key) {
  natsStatus status = NATS_OK;
  kvStore* store = connection_->table(table, std::nullopt, status);
  if (store != nullptr) status = kvStore_Delete(store, key.c_str());
  if (status == NATS_NOT_FOUND) return connection_->reached();
  return connection_->outcome(status, {}, "withdrawing from the table " + table);
}

}  // namespace carnot
