// http/server.h -- an HTTP server: whole requests in, whole or streamed answers out, within limits.
//
// HTTP/1.1 and 1.0. A thread for each connection. A request has to arrive in a given time and size, an answer has to be
// taken in a given time; further connections than there may be are answered with 503. A request that RFC 9112 does not
// allow is refused, and its connection closed (request_head.h). Errors that the server itself answers have the body
// that `error_body` makes.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/http/headers.h"

namespace carnot {

struct HttpCall {
  std::string method{};
  std::string path{};  ///< without the query
  HttpHeaders headers{};
  std::string body{};
};

/// The connection that a request came on.
class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  /// False once the client has left: the answer will not be read. A client that only closed its side of the connection
  /// gets its answer; one that left looks the same for about a second. Any thread, while the request is answered.
  virtual bool is_open() const = 0;
  /// True as soon as the client has closed its side: for what must not be given to a client that has left.
  virtual bool may_have_left() const { return !is_open(); }
};

struct HttpReply {
  int status = 200;
  std::string body{};
  std::string content_type = "application/json";
  HttpHeaders headers{};  ///< next to the content's type and length
  /// Where set, the answer's pieces instead of `body`: each is sent as it comes, and nothing ends the answer. Freed as
  /// soon as the answer has ended or the client has left.
  std::function<std::optional<std::string>()> pieces{};
};

using HttpHandler = std::function<HttpReply(const HttpCall&, const HttpConnection&)>;

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 0;                           ///< 0: any that is free
  std::string key{};                      ///< where set, requests need the header `Authorization: Bearer KEY`
  std::string key_header{};               ///< or this one with the key alone, if it is set
  std::vector<std::string> open_paths{};  ///< that need no key
  std::vector<std::string> body_types{"application/json"};  ///< media types of bodies; others are refused with 415
  std::string certificate{};  ///< PEM file, the chain included; where set, the server speaks TLS alone
  std::string private_key{};  ///< PEM file of the certificate's key
  std::size_t max_body_bytes = std::size_t{8} << 20;
  std::size_t max_header_bytes = std::size_t{64} << 10;
  int max_connections = 256;
  std::chrono::milliseconds receive_time{30'000};  ///< for a whole request, from its first byte
  std::chrono::milliseconds idle_time{60'000};     ///< of a connection between requests
  std::chrono::milliseconds send_time{30'000};     ///< without progress in sending
  std::function<std::string(int status, const std::string& message)> error_body{};  ///< JSON; empty: the message
};

/// True for addresses that only this machine reaches: 127.0.0.1, ::1, localhost.
bool is_loopback(std::string_view host);

class HttpServer {
 public:
  /// Listens; requests are answered from now on, each on its connection's thread. A server without a key refuses
  /// requests of web pages that are not its own (the header Origin) and, on a loopback address, those to other names,
  /// so that no web page reaches it under a name of the page's choice. The error says why it cannot listen.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options, HttpHandler handler);

  /// As stop().
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

  /// Takes no more requests, refuses those that are not whole, and waits for those that are being answered.
  void stop();

 private:
  class Listener;
  explicit HttpServer(std::unique_ptr<Listener> listener);
  std::unique_ptr<Listener> listener_;
};

}  // namespace carnot
