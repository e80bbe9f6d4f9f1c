#include "carnot/remote_rollouts/transport/broker_connection.h"

#include <utility>

#include "carnot/core/base/log.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::int64_t kReconnectWait = 500;  // milliseconds
constexpr milliseconds kPatience{5000};       // with a server that is up and refuses

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
  if (!given.credentials.empty()) {
    const Status read =
        file(given.credentials, natsOptions_SetUserCredentialsFromFiles(options, given.credentials.c_str(), nullptr));
    if (!read) return read;
  }
  if (!given.authority.empty()) {
    const Status read = file(given.authority, natsOptions_LoadCATrustedCertificates(options, given.authority.c_str()));
    if (!read) return read;
  }
  if (given.certificate.empty()) return Done{};
  return file(given.certificate,
              natsOptions_LoadCertificatesChain(options, given.certificate.c_str(), given.private_key.c_str()));
}

}  // namespace

bool Broker::Connection::is_up() {
  const bool up = natsConnection_Status(connection.get()) == NATS_CONN_STATUS_CONNECTED;
  if (!up && !told_away)
    log_warning(given.url + ": the NATS server is away; waiting for it");
  else if (up && told_away)
    log_info(given.url + ": the NATS server is there again");
  told_away = !up;
  return up;
}

Result<Reached<Done>> Broker::Connection::outcome(natsStatus status, jsErrCode code, const std::string& what) {
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

Result<Reached<Done>> Broker::Connection::refused(std::string why) {
  const auto now = Clock::now();
  if (!refused_since) refused_since = now;
  if (now - *refused_since < kPatience) return Reached<Done>{};
  return Error{std::move(why)};
}

Reached<Done> Broker::Connection::reached() {
  refused_since.reset();
  return {.reached = true};
}

Result<Reached<Done>> Broker::Connection::request_outcome(natsStatus status, jsErrCode code, const std::string& what) {
  return outcome(status, status == NATS_NO_RESPONDERS ? JSNotEnabledErr : code, what);
}

Result<std::unique_ptr<Broker::Connection>> Broker::Connection::with(const BrokerOptions& given) {
  auto made = std::make_unique<Connection>();
  made->given = given;
  natsOptions* options = nullptr;
  if (const natsStatus status = natsOptions_Create(&options); status != NATS_OK) return refusal(given.url, status);
  made->options.reset(options);
  CARNOT_RETURN_IF_ERROR(set_up(options, given));
  return made;
}

Result<Reached<Done>> Broker::Connection::dial() {
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

Result<Reached<Done>> Broker::Connection::ask_for_streams() {
  jsErrCode code{};
  jsAccountInfo* account = nullptr;
  const natsStatus status = js_GetAccountInfo(&account, streams.get(), nullptr, &code);
  jsAccountInfo_Destroy(account);
  return request_outcome(status, code, "asking about JetStream");
}

kvStore* Broker::Connection::table(const std::string& name, const std::optional<milliseconds>& lifetime_to_make,
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

}  // namespace carnot
