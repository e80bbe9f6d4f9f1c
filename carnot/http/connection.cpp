#include "carnot/http/connection.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace carnot {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSlice{100};        // between two looks at whether the server stops
constexpr milliseconds kProbeAfter{1000};  // for a client that has closed its side and may have left
constexpr milliseconds kLinger{1000};      // for what a client sends after its answer
constexpr milliseconds kLastAnswer{2000};  // for a client to take its answer once the server stops
constexpr std::size_t kPieceBytes = std::size_t{16} << 10;

}  // namespace

Result<TlsSettings> tls_settings(const std::string& certificate, const std::string& private_key) {
  if (certificate.empty()) return TlsSettings();
  ERR_clear_error();
  const auto failed = [](const std::string& file) {
    const char* why = ERR_reason_error_string(ERR_peek_last_error());
    return Error{file + ": " + (why == nullptr ? "cannot be used" : why) +
                 "; expected PEM files of a certificate and of its private key"};
  };
  TlsSettings settings(SSL_CTX_new(TLS_server_method()));
  if (!settings) return failed("TLS");
  SSL_CTX_set_min_proto_version(settings.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(settings.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(settings.get(), certificate.c_str()) != 1) return failed(certificate);
  if (SSL_CTX_use_PrivateKey_file(settings.get(), private_key.c_str(), SSL_FILETYPE_PEM) != 1)
    return failed(private_key);
  return settings;
}

Connection::Connection(Descriptor socket, const HttpServerOptions& options, const std::atomic<bool>& stopping,
                       SSL_CTX* tls)
    : socket_(std::move(socket)), options_(options), stopping_(stopping) {
  if (tls == nullptr) return;
  ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
  tls_.reset(SSL_new(tls));
  broken_ = !tls_ || SSL_set_fd(tls_.get(), socket_.get()) != 1;
  if (!broken_) SSL_set_accept_state(tls_.get());
}

Connection::~Connection() { ::shutdown(socket_.get(), SHUT_RDWR); }

short Connection::events_now(short events) const {
  pollfd state{.fd = socket_.get(), .events = events, .revents = 0};
  return ::poll(&state, 1, 0) > 0 ? state.revents : short{0};
}

bool Connection::wait(short events, Clock::time_point give_up, milliseconds after_stop) {
  for (auto now = Clock::now(); now < give_up; now = Clock::now()) {
    const auto slice = std::min(kSlice, std::chrono::ceil<milliseconds>(give_up - now));
    pollfd state{.fd = socket_.get(), .events = events, .revents = 0};
    if (::poll(&state, 1, static_cast<int>(slice.count())) > 0) return true;
    if (!stopping_) continue;
    if (!stop_seen_) stop_seen_ = Clock::now();
    give_up = std::min(give_up, *stop_seen_ + after_stop);
  }
  return false;
}

bool Connection::wait_for_request() {
  if (broken_) return false;
  if (tls_ && SSL_pending(tls_.get()) > 0) return true;
  return !stopping_ && wait(POLLIN, Clock::now() + options_.idle_time, milliseconds(0)) && !stopping_;
}

void Connection::begin_request() { deadline_ = Clock::now() + options_.receive_time; }

void Connection::await_answer(bool interim) {
  const std::lock_guard lock(probe_mutex_);
  can_probe_ = interim && !tls_;
}

Connection::Attempt Connection::attempt_of(ssize_t count, short event) const {
  if (count > 0) return {.count = static_cast<std::size_t>(count)};
  if (tls_) {
    const int wanted = SSL_get_error(tls_.get(), static_cast<int>(count));
    if (wanted == SSL_ERROR_WANT_READ) return {.wanted = POLLIN};
    return {.wanted = wanted == SSL_ERROR_WANT_WRITE ? short{POLLOUT} : short{0}};
  }
  const bool later = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  return {.wanted = later ? event : short{0}};
}

Connection::Attempt Connection::try_read(char* to, std::size_t size) {
  if (!tls_) return attempt_of(::recv(socket_.get(), to, size, MSG_DONTWAIT), POLLIN);
  ERR_clear_error();
  return attempt_of(SSL_read(tls_.get(), to, static_cast<int>(std::min(size, kPieceBytes))), POLLIN);
}

Connection::Attempt Connection::try_write(std::string_view bytes) {
  if (!tls_) return attempt_of(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT), POLLOUT);
  ERR_clear_error();
  return attempt_of(SSL_write(tls_.get(), bytes.data(), static_cast<int>(std::min(bytes.size(), kPieceBytes))),
                    POLLOUT);
}

std::size_t Connection::read(char* to, std::size_t size) {
  while (Clock::now() < deadline_) {
    const Attempt attempt = try_read(to, size);
    if (attempt.count > 0) return attempt.count;
    ended_ = {.status = 400, .message = "the request broke off"};
    if (attempt.wanted == 0) return 0;
    if (wait(attempt.wanted, deadline_, milliseconds(0))) continue;
    if (!stopping_) break;
    ended_ = {.status = 503, .message = "the server is ending"};
    return 0;
  }
  ended_ = {.status = 408, .message = "the request did not arrive in time"};
  return 0;
}

bool Connection::write(std::string_view bytes) {
  {
    const std::lock_guard lock(probe_mutex_);
    can_probe_ = false;
  }
  auto give_up = Clock::now() + options_.send_time;
  while (!bytes.empty() && !broken_) {
    const Attempt attempt = try_write(bytes);
    bytes.remove_prefix(attempt.count);
    if (attempt.count > 0)
      give_up = Clock::now() + options_.send_time;
    else
      broken_ = attempt.wanted == 0 || !wait(attempt.wanted, give_up, kLastAnswer);
  }
  return !broken_;
}

void Connection::finish() {
  if (tls_ && !broken_ && SSL_is_init_finished(tls_.get()) == 1) (void)SSL_shutdown(tls_.get());
  ::shutdown(socket_.get(), SHUT_WR);
  char unread[4096];
  const auto give_up = Clock::now() + kLinger;
  for (ssize_t count = 1; count != 0 && Clock::now() < give_up;) {
    count = ::recv(socket_.get(), unread, sizeof unread, MSG_DONTWAIT);
    if (count < 0 && (errno != EAGAIN || stopping_ || !wait(POLLIN, give_up, milliseconds(0)))) return;
  }
}

bool Connection::may_have_left() const { return events_now(POLLRDHUP) != 0; }

// A client that closes its side may still read: a system only says that it does not once something was sent to it.
bool Connection::is_open() const {
  const short events = events_now(POLLRDHUP);
  if (events == 0) return true;
  if ((events & (POLLERR | POLLHUP)) != 0 || tls_) return false;
  const std::lock_guard lock(probe_mutex_);
  if (!closed_since_) closed_since_ = Clock::now();
  if (!can_probe_ || Clock::now() - *closed_since_ < kProbeAfter) return true;
  can_probe_ = false;
  constexpr std::string_view kInterim = "HTTP/1.1 100 Continue\r\n\r\n";
  (void)::send(socket_.get(), kInterim.data(), kInterim.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return (events_now(POLLRDHUP) & (POLLERR | POLLHUP)) == 0;
}

}  // namespace carnot
