// http/connection.h -- one client of the server: bytes in and out, by TCP or TLS, each within its time.
#pragma once

#include <openssl/ssl.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/result.h"
#include "carnot/http/request_reader.h"
#include "carnot/http/server.h"

namespace carnot {

/// Frees what OpenSSL has allocated.
struct FreeTls {
  void operator()(SSL_CTX* settings) const { SSL_CTX_free(settings); }
  void operator()(SSL* session) const { SSL_free(session); }
};
using TlsSettings = std::unique_ptr<SSL_CTX, FreeTls>;
using TlsSession = std::unique_ptr<SSL, FreeTls>;

/// Of a server with these PEM files; null if `certificate` is empty.
Result<TlsSettings> tls_settings(const std::string& certificate, const std::string& private_key);

class Connection final : public HttpConnection, public ByteSource {
 public:
  /// Once `stopping` is true nothing more is read, and a client that takes nothing is waited for no longer. Both, and
  /// `tls`, must outlive the connection; `tls` may be null.
  Connection(Descriptor socket, const HttpServerOptions& options, const std::atomic<bool>& stopping, SSL_CTX* tls);
  ~Connection() override;

  /// Waits for the first byte of a request; false if none comes.
  bool wait_for_request();
  /// The time for the request's bytes begins.
  void begin_request();
  /// The request is whole. `interim`: its sender knows interim answers.
  void await_answer(bool interim);

  /// False if the client has left or does not take the bytes in time.
  bool write(std::string_view bytes);

  /// No more is written. What the client still sends is read for a moment: with bytes unread, closing would take the
  /// answer back.
  void finish();

  bool is_open() const override;
  bool may_have_left() const override;
  std::size_t read(char* to, std::size_t size) override;
  HttpProblem why_ended() const override { return ended_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// What the system took or gave at once; where that is nothing, the event to wait for, or 0 at the stream's end.
  struct Attempt {
    std::size_t count = 0;
    short wanted = 0;
  };
  Attempt try_read(char* to, std::size_t size);
  Attempt try_write(std::string_view bytes);
  Attempt attempt_of(ssize_t count, short event) const;

  /// False if the time is over, or the server has been stopping for longer than `after_stop`.
  bool wait(short events, Clock::time_point give_up, std::chrono::milliseconds after_stop);
  short events_now(short events) const;

  Descriptor socket_;
  TlsSession tls_{};
  const HttpServerOptions& options_;
  const std::atomic<bool>& stopping_;
  std::optional<Clock::time_point> stop_seen_{};
  Clock::time_point deadline_{};
  HttpProblem ended_{};
  bool broken_ = false;

  mutable std::mutex probe_mutex_{};
  mutable bool can_probe_ = false;  ///< an interim answer can be sent
  mutable std::optional<Clock::time_point> closed_since_{};
};

}  // namespace carnot
