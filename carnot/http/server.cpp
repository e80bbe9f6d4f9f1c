#include "carnot/http/server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "carnot/core/base/file.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/no_pipe_signal.h"
#include "carnot/core/base/strings.h"
#include "carnot/http/connection.h"

namespace carnot {
namespace {

using Problem = std::optional<HttpProblem>;

constexpr int kBacklog = 1024;
constexpr std::size_t kSmallBody = std::size_t{64} << 10;  // sent in one piece with its head

// In time that does not depend on where the two differ.
bool same_secret(const std::string& a, const std::string& b) {
  const std::string hash_a = sha256_hex(a), hash_b = sha256_hex(b);
  return CRYPTO_memcmp(hash_a.data(), hash_b.data(), hash_a.size()) == 0;
}

std::string host_name(const std::string& host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

const char* reason_of(int status) {
  static constexpr auto kReasons = std::to_array<std::pair<int, const char*>>({
      {200, "OK"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {413, "Content Too Large"},
      {414, "URI Too Long"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {422, "Unprocessable Content"},
      {431, "Request Header Fields Too Large"},
      {499, "Client Closed Request"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"},
  });
  for (const auto& [known, reason] : kReasons)
    if (known == status) return reason;
  return "";
}

/// `framing`: the header lines that say where the body ends.
std::string head_of(const HttpReply& reply, const std::string& framing, bool closes) {
  std::string head = "HTTP/1.1 " + std::to_string(reply.status) + " " + reason_of(reply.status) +
                     "\r\nContent-Type: " + reply.content_type + "\r\n" + framing;
  for (const auto& [name, value] : reply.headers) head += name + ": " + value + "\r\n";
  return head + (closes ? "Connection: close\r\n\r\n" : "\r\n");
}

bool send_whole(Connection& connection, const HttpReply& reply, bool with_body, bool closes) {
  const std::string head = head_of(reply, "Content-Length: " + std::to_string(reply.body.size()) + "\r\n", closes);
  if (!with_body) return connection.write(head);
  if (reply.body.size() <= kSmallBody) return connection.write(head + reply.body);
  return connection.write(head) && connection.write(reply.body);
}

/// In chunks, or to the end of the connection.
bool send_pieces(Connection& connection, const HttpReply& reply, bool in_chunks, bool closes) {
  if (!connection.write(head_of(reply, in_chunks ? "Transfer-Encoding: chunked\r\n" : "", closes))) return false;
  try {
    while (const std::optional<std::string> piece = reply.pieces()) {
      if (piece->empty()) continue;
      char size[24];
      std::snprintf(size, sizeof size, "%zx\r\n", piece->size());
      if (!connection.write(in_chunks ? size + *piece + "\r\n" : *piece)) return false;
    }
  } catch (const std::exception& error) {
    log_warning(std::string("an answer broke off: ") + error.what());
    return false;
  }
  return !in_chunks || connection.write("0\r\n\r\n");
}

/// Listens on the first address that `host` names and that can be had.
Result<Descriptor> listening_socket(const std::string& host, int port) {
  const auto failed = [&](const std::string& why) {
    return Error{"cannot listen on " + host + ":" + std::to_string(port) + ": " + why};
  };
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    return failed("the address is not one of this machine");
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int why = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Descriptor socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    const int yes = 1, no = 0;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (one->ai_family == AF_INET6) (void)::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    if (socket.is_open() && ::bind(socket.get(), one->ai_addr, one->ai_addrlen) == 0 &&
        ::listen(socket.get(), kBacklog) == 0)
      return socket;
    why = errno;
  }
  return failed(why == EADDRNOTAVAIL ? "the address is not one of this machine" : std::strerror(why));
}

int port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

class HttpServer::Listener {
 public:
  Listener(const HttpServerOptions& options, HttpHandler handler) : options_(options), handler_(std::move(handler)) {}

  Status open() {
    CARNOT_ASSIGN_OR_RETURN(tls_, tls_settings(options_.certificate, options_.private_key));
    CARNOT_ASSIGN_OR_RETURN(socket_, listening_socket(options_.host, options_.port));
    port_ = port_of(socket_);
    thread_ = std::thread([this] { accept_all(); });
    return Done{};
  }

  int port() const { return port_; }

  void close() {
    stopping_ = true;
    (void)::shutdown(socket_.get(), SHUT_RDWR);  // ends accept()
    if (thread_.joinable()) thread_.join();
    (void)socket_.close();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return connections_ == 0; });
  }

 private:
  void accept_all() {
    while (!stopping_) {
      Descriptor client(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client.is_open()) {
        const int yes = 1;
        (void)::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        take(std::move(client));
      } else if (!stopping_ && errno != EINTR && errno != ECONNABORTED) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));  // no descriptors are left: some will be closed
      }
    }
  }

  /// On its own thread; the server waits for all of them.
  void take(Descriptor client) {
    {
      const std::lock_guard lock(mutex_);
      if (connections_ >= options_.max_connections) return turn_away(client);
      ++connections_;
    }
    try {
      std::thread([this, client = std::move(client)]() mutable {
        serve(std::move(client));
        const std::lock_guard lock(mutex_);
        --connections_;
        changed_.notify_all();
      }).detach();
    } catch (const std::system_error&) {
      const std::lock_guard lock(mutex_);
      --connections_;
    }
  }

  /// As far as the system takes the answer at once.
  void turn_away(const Descriptor& client) const {
    if (tls_) return;
    const HttpReply reply = problem_reply({.status = 503, .message = "too many connections; try again later"});
    const std::string text =
        head_of(reply, "Content-Length: " + std::to_string(reply.body.size()) + "\r\n", true) + reply.body;
    (void)::send(client.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)::shutdown(client.get(), SHUT_WR);
    char unread[4096];  // closing with bytes unread would take the answer back
    while (::recv(client.get(), unread, sizeof unread, MSG_DONTWAIT) > 0) continue;
  }

  void serve(Descriptor client) {
    const NoPipeSignal quiet;  // OpenSSL writes without MSG_NOSIGNAL
    Connection connection(std::move(client), options_, stopping_, tls_.get());
    RequestReader reader(connection,
                         {.header_bytes = options_.max_header_bytes, .body_bytes = options_.max_body_bytes});
    try {
      while ((reader.has_bytes() || connection.wait_for_request()) && answer_next(connection, reader)) continue;
    } catch (const std::exception& error) {
      log_warning(std::string("a connection broke off: ") + error.what());
    }
    connection.finish();
  }

  /// False if the connection ends with it.
  bool answer_next(Connection& connection, RequestReader& reader) const {
    connection.begin_request();
    HttpCall call;
    RequestHead head;
    Problem problem = reader.read_head(head);
    if (!problem) problem = refusal_of(head);
    if (!problem && head.awaits_continue && !connection.write("HTTP/1.1 100 Continue\r\n\r\n")) return false;
    if (!problem) problem = reader.read_body(head, call.body);
    const bool with_body = head.method != "HEAD";
    if (problem) {
      (void)send_whole(connection, problem_reply(*problem), with_body, true);
      return false;
    }
    connection.await_answer(!head.is_http_1_0);
    call.method = std::move(head.method);
    call.path = std::move(head.path);
    call.headers = std::move(head.headers);
    const HttpReply reply = answer_to(call, connection);
    const bool closes = !head.keeps_connection || stopping_;
    const bool sent = reply.pieces && with_body ? send_pieces(connection, reply, !head.is_http_1_0, closes)
                                                : send_whole(connection, reply, with_body, closes);
    return sent && !closes;
  }

  HttpReply answer_to(const HttpCall& call, const Connection& connection) const {
    try {
      return handler_(call, connection);
    } catch (const std::exception& error) {
      log_warning(call.method + " " + call.path + ": " + error.what());
      return problem_reply({.status = 500, .message = "the request could not be answered"});
    }
  }

  HttpReply problem_reply(const HttpProblem& problem) const {
    HttpReply reply{
        .status = problem.status,
        .body = options_.error_body ? options_.error_body(problem.status, problem.message) : problem.message};
    if (problem.status == 503) reply.headers.push_back({"Retry-After", "1"});
    return reply;
  }

  /// What is wrong with a request before its body is read.
  Problem refusal_of(const RequestHead& head) const {
    if (const Problem stranger = options_.key.empty() ? foreign(head) : without_key(head)) return stranger;
    if (!head.has_body()) return std::nullopt;
    const std::string* type = find_header(head.headers, "Content-Type");
    const std::string given = type == nullptr ? "" : lower_case(trim(type->substr(0, type->find(';'))));
    if (std::ranges::find(options_.body_types, given) != options_.body_types.end()) return std::nullopt;
    return HttpProblem{.status = 415,
                       .message = "Content-Type: expected " + join(options_.body_types, " or ") + ", found " +
                                  (given.empty() ? "none" : given)};
  }

  Problem foreign(const RequestHead& head) const {
    if (is_loopback(options_.host) && !is_loopback(host_name(head.host)))
      return HttpProblem{
          .status = 403,
          .message = "Host: expected a loopback address, as the server listens on one; other names need a key"};
    const std::string* origin = find_header(head.headers, "Origin");
    if (origin == nullptr || lower_case(*origin) == (tls_ ? "https://" : "http://") + head.host) return std::nullopt;
    return HttpProblem{.status = 403, .message = "Origin: a web page of another origin may not use this server"};
  }

  Problem without_key(const RequestHead& head) const {
    const auto& open = options_.open_paths;
    if (std::find(open.begin(), open.end(), head.path) != open.end()) return std::nullopt;
    constexpr std::string_view kBearer = "bearer ";
    const std::string* given = find_header(head.headers, "Authorization");
    if (given != nullptr && lower_case(given->substr(0, kBearer.size())) == kBearer &&
        same_secret(given->substr(kBearer.size()), options_.key))
      return std::nullopt;
    const std::string* bare = options_.key_header.empty() ? nullptr : find_header(head.headers, options_.key_header);
    if (bare != nullptr && same_secret(*bare, options_.key)) return std::nullopt;
    return HttpProblem{.status = 401,
                       .message = "the key is missing or wrong; expected the header Authorization: Bearer KEY" +
                                  (options_.key_header.empty() ? "" : " or " + options_.key_header + ": KEY")};
  }

  HttpServerOptions options_;
  HttpHandler handler_;
  TlsSettings tls_{};
  Descriptor socket_{};
  int port_ = -1;
  std::atomic<bool> stopping_ = false;
  std::thread thread_{};
  std::mutex mutex_{};
  std::condition_variable changed_{};
  int connections_ = 0;
};

HttpServer::HttpServer(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}
HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options, HttpHandler handler) {
  auto listener = std::make_unique<Listener>(options, std::move(handler));
  CARNOT_RETURN_IF_ERROR(listener->open());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener)));
}

int HttpServer::port() const { return listener_->port(); }
void HttpServer::stop() { listener_->close(); }

}  // namespace carnot
