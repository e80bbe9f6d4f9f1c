#include "carnot/remote_rollouts/transport/broker.h"

#include <nats/nats.h>

#include <map>
#include <thread>
#include <utility>

#include "carnot/core/base/check.h"
#include "carnot/core/base/log.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t kAnswerWait = 5000;        ///< milliseconds
constexpr std::int64_t kNanoseconds = 1'000'000;  ///< of a millisecond
constexpr std::int64_t kReconnectWait = 500;      // milliseconds
constexpr milliseconds kPatience{5000};           // with a server that is up and refuses

/// The library would print them.
void drop_error(natsConnection*, natsSubscription*, natsStatus, void*) {}

bool is_away(natsStatus status) {
  switch (status) {
    case NATS_IO_ERROR:
    case NATS_NO_SERVER:
    case NATS_STALE_CONNECTION:
    case NATS_CONNECTION_DISCONNECTED:
    case NATS_TIMEOUT:
    case NATS_NO_RESPONDERS:
    case NATS_INSUFFICIENT_BUFFER:  // nothing is kept for a server that is away
    case NATS_NOT_YET_CONNECTED: return true;
    default: return false;
  }
}

std::string last_words(natsStatus status) {
  natsStatus of = NATS_OK;
  const char* text = nats_GetLastError(&of);
  std::string words = natsStatus_GetText(status);
  if (text != nullptr && of == status && *text != '\0') words += std::string(" (") + text + ")";
  return words;
}

/// Why no connection can be made, and what was expected.
Error refusal(const std::string& url, natsStatus status) {
  const std::string where = url + ": ";
  switch (status) {
    case NATS_CONNECTION_AUTH_FAILED:
    case NATS_NOT_PERMITTED:
      return Error{where +
                   "the NATS server refuses this key; expected a credentials file, or CARNOT_NATS_USER and "
                   "CARNOT_NATS_PASSWORD, or CARNOT_NATS_TOKEN in the environment"};
    case NATS_SECURE_CONNECTION_WANTED:
      return Error{where + "the NATS server does not speak TLS; expected nats:// in place of tls://"};
    case NATS_SSL_ERROR: return Error{where + "no secure connection: " + last_words(status)};
    default: return Error{where + last_words(status)};
  }
}

Status set_up(natsOptions* options, const BrokerOptions& given) {
  const bool secure = given.url.starts_with("tls://");
  natsStatus failed = NATS_OK;
  const auto all = [&](natsStatus status) { failed = failed == NATS_OK ? status : failed; };
  all(natsOptions_SetURL(options, given.url.c_str()));
  all(natsOptions_SetName(options, given.name.c_str()));
  all(natsOptions_SetMaxReconnect(options, -1));
  all(natsOptions_SetReconnectWait(options, kReconnectWait));
  all(natsOptions_SetReconnectBufSize(options, 0));
  all(natsOptions_SetFailRequestsOnDisconnect(options, true));
  all(natsOptions_SetTimeout(options, kAnswerWait));
  all(natsOptions_SetPingInterval(options, 5000));
  all(natsOptions_SetErrorHandler(options, drop_error, nullptr));
  if (!given.user.empty()) all(natsOptions_SetUserInfo(options, given.user.c_str(), given.password.c_str()));
  if (!given.token.empty()) all(natsOptions_SetToken(options, given.token.c_str()));
  if (secure) all(natsOptions_SetSecure(options, true));
  if (failed != NATS_OK) return refusal(given.url, failed);
  const auto file = [&](const std::string& path, natsStatus status) -> Status {
    if (status == NATS_OK) return Done{};
    return Error{path + ": " + last_words(status)};
  };
  if (!given.credentials.empty())
    CARNOT_RETURN_IF_ERROR(
        file(given.credentials, natsOptions_SetUserCredentialsFromFiles(options, given.credentials.c_str(), nullptr)));
  if (!given.authority.empty())
    CARNOT_RETURN_IF_ERROR(
        file(given.authority, natsOptions_LoadCATrustedCertificates(options, given.authority.c_str())));
  if (given.certificate.empty()) return Done{};
  return file(given.certificate,
              natsOptions_LoadCertificatesChain(options, given.certificate.c_str(), given.private_key.c_str()));
}

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
using WatcherPointer = std::unique_ptr<kvWatcher, Destroy<kvWatcher_Destroy>>;
using TablePointer = std::unique_ptr<kvStore, Destroy<kvStore_Destroy>>;

}  // namespace

/// The NATS client's.
struct Broker::Connection {
  BrokerOptions given;
  OptionsPointer options{};
  ConnectionPointer connection{};
  StreamsPointer streams{};
  std::map<std::string, TablePointer> tables{};
  bool reported_away = false;
  std::optional<std::chrono::steady_clock::time_point> refused_since{};  ///< without a call that went well in between

  bool is_up() {
    const bool up = natsConnection_Status(connection.get()) == NATS_CONN_STATUS_CONNECTED;
    if (!up && !reported_away)
      log_warning(given.url + ": the NATS server is away; waiting for it");
    else if (up && reported_away)
      log_info(given.url + ": the NATS server is there again");
    reported_away = !up;
    return up;
  }

  /// What a call's status means. `code`: JetStream's own, 0 where it has none.
  Result<Reached<Done>> outcome(natsStatus status, jsErrCode code, const std::string& what) {
    if (status == NATS_OK) return reached();
    if (natsConnection_Status(connection.get()) == NATS_CONN_STATUS_CLOSED) {
      const char* text = nullptr;
      natsStatus last = natsConnection_GetLastError(connection.get(), &text);
      return refusal(given.url, last == NATS_OK ? status : last);
    }
    const bool no_streams = code == JSNotEnabledErr || code == JSNotEnabledForAccountErr;
    const bool up = is_up();
    if (!up) refused_since.reset();
    if (!up || (is_away(status) && !no_streams)) return Reached<Done>{};
    return refused(no_streams
                       ? given.url + ": the NATS server has no JetStream; expected one started with nats-server -js"
                       : given.url + ": " + what + ": " + last_words(status));
  }

  /// As one that is away, and an error once that has lasted: a server takes connections before its JetStream is up.
  Result<Reached<Done>> refused(std::string why) {
    const auto now = Clock::now();
    if (!refused_since) refused_since = now;
    if (now - *refused_since < kPatience) return Reached<Done>{};
    return Error{std::move(why)};
  }

  Reached<Done> reached() {
    refused_since.reset();
    return {.reached = true};
  }

  /// The outcome of a request to JetStream itself, which no one answers where it is not there.
  Result<Reached<Done>> request_outcome(natsStatus status, jsErrCode code, const std::string& what) {
    return outcome(status, status == NATS_NO_RESPONDERS ? JSNotEnabledErr : code, what);
  }

  static Result<std::unique_ptr<Connection>> with(const BrokerOptions& given) {
    auto made = std::make_unique<Connection>();
    made->given = given;
    natsOptions* options = nullptr;
    if (const natsStatus status = natsOptions_Create(&options); status != NATS_OK) return refusal(given.url, status);
    made->options.reset(options);
    CARNOT_RETURN_IF_ERROR(set_up(options, given));
    return made;
  }

  /// Tries once.
  Result<Reached<Done>> dial() {
    natsConnection* made = nullptr;
    natsStatus status = natsConnection_Connect(&made, options.get());
    if (status != NATS_OK && is_away(status)) return Reached<Done>{};
    if (status != NATS_OK) return refusal(given.url, status);
    connection.reset(made);
    jsOptions stream_options;
    jsOptions_Init(&stream_options);
    stream_options.Wait = kAnswerWait;
    jsCtx* context = nullptr;
    status = natsConnection_JetStream(&context, made, &stream_options);
    if (status != NATS_OK) return refusal(given.url, status);
    streams.reset(context);
    return reached();
  }

  Result<Reached<Done>> ask_for_streams() {
    jsErrCode code{};
    jsAccountInfo* account = nullptr;
    const natsStatus status = js_GetAccountInfo(&account, streams.get(), nullptr, &code);
    jsAccountInfo_Destroy(account);
    return request_outcome(status, code, "asking about JetStream");
  }

  /// Null if it is not there; `status` says why. Made with this lifetime of its values, where one is given.
  kvStore* table(const std::string& name, const std::optional<std::chrono::milliseconds>& lifetime_to_make,
                 natsStatus& status) {
    status = NATS_OK;
    if (const auto found = tables.find(name); found != tables.end()) return found->second.get();
    kvStore* opened = nullptr;
    status = js_KeyValue(&opened, streams.get(), name.c_str());
    if (status == NATS_NOT_FOUND && lifetime_to_make) {
      kvConfig config;
      kvConfig_Init(&config);
      config.Bucket = name.c_str();
      config.TTL = lifetime_to_make->count() * kNanoseconds;
      status = js_CreateKeyValue(&opened, streams.get(), &config);
    }
    if (status != NATS_OK) return nullptr;
    return tables.emplace(name, TablePointer(opened)).first->second.get();
  }
};

Broker::Broker(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
Broker::~Broker() = default;

Result<std::unique_ptr<Broker>> Broker::connect(const BrokerOptions& given, const std::function<bool()>& go_on) {
  auto made = Connection::with(given);
  if (!made) return made.error();
  Connection& connection = **made;
  for (bool is_reported = false;; std::this_thread::sleep_for(milliseconds(500))) {
    if (!go_on()) return std::unique_ptr<Broker>();
    CARNOT_ASSIGN_OR_RETURN(const auto dialed, connection.dial());
    if (dialed.reached) break;
    if (!is_reported) log_warning(given.url + ": no NATS server answers there; waiting for one (nats-server -js)");
    is_reported = true;
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
