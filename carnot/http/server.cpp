#include "carnot/http/server.h"

#include <fcntl.h>
#include <httplib.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "carnot/base/file.h"
#include "carnot/base/log.h"
#include "carnot/base/no_pipe_signal.h"
#include "carnot/base/strings.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSlice{100};  // between two looks at whether the server stops
constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr int kBacklog = 1024;

// In time that does not depend on where the two differ.
bool same_secret(const std::string& a, const std::string& b) {
  const std::string hash_a = sha256_hex(a), hash_b = sha256_hex(b);
  return CRYPTO_memcmp(hash_a.data(), hash_b.data(), hash_a.size()) == 0;
}

std::string host_name(std::string host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

struct FreeTls {
  void operator()(SSL_CTX* settings) const { SSL_CTX_free(settings); }
  void operator()(SSL* session) const { SSL_free(session); }
};
using TlsSettings = std::unique_ptr<SSL_CTX, FreeTls>;
using TlsSession = std::unique_ptr<SSL, FreeTls>;

/// Null where the server speaks none.
Result<TlsSettings> tls_settings(const HttpServerOptions& options) {
  if (options.certificate.empty()) return TlsSettings();
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
  if (SSL_CTX_use_certificate_chain_file(settings.get(), options.certificate.c_str()) != 1)
    return failed(options.certificate);
  if (SSL_CTX_use_PrivateKey_file(settings.get(), options.private_key.c_str(), SSL_FILETYPE_PEM) != 1)
    return failed(options.private_key);
  return settings;
}

/// One client: a stream of bytes with limits of size and time.
class Connection final : public httplib::Stream, public HttpConnection {
 public:
  /// `tls` may be null.
  Connection(int socket, const HttpServerOptions& options, const std::atomic<bool>& stopping, SSL_CTX* tls)
      : socket_(socket), options_(options), stopping_(stopping) {
    if (tls == nullptr) return;
    ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) | O_NONBLOCK);
    tls_.reset(SSL_new(tls));
    if (!tls_ || SSL_set_fd(tls_.get(), socket_) != 1) {
      broken_ = true;
      return;
    }
    SSL_set_accept_state(tls_.get());
  }
  ~Connection() override {
    if (tls_ && SSL_is_init_finished(tls_.get()) == 1) (void)SSL_shutdown(tls_.get());
    ::shutdown(socket_, SHUT_RDWR);
    ::close(socket_);
  }

  /// Waits for the first byte of a request; false where none comes.
  bool wait_for_request() {
    if (begin_ < end_ || (tls_ && SSL_pending(tls_.get()) > 0)) return true;
    for (const auto give_up = Clock::now() + options_.idle_time; Clock::now() < give_up && !stopping_;)
      if (const int events = wait_for(POLLIN, kSlice); events != 0) return (events & POLLIN) != 0;
    return false;
  }

  void begin_request() {
    deadline_ = Clock::now() + options_.receive_time;
    budget_ = options_.max_header_bytes;
    timed_out_ = false;
  }
  /// Chunks may have as much around them as in them; what they hold is counted where it is read.
  void begin_body() { budget_ = 2 * options_.max_body_bytes + kReadBytes; }

  bool timed_out() const { return timed_out_; }
  void close_after_answer() { closing_ = true; }
  bool is_closing() const { return closing_; }

  /// As far as the system takes it at once: for a client that is refused.
  void send_at_once(const std::string& text) {
    if (tls_)
      (void)SSL_write(tls_.get(), text.data(), static_cast<int>(text.size()));
    else
      (void)::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::shutdown(socket_, SHUT_WR);
    char unread[4096];  // closing with bytes unread would take the answer back
    while (::recv(socket_, unread, sizeof unread, MSG_DONTWAIT) > 0) continue;
  }

  bool is_open() const override {
    pollfd state{.fd = socket_, .events = POLLRDHUP, .revents = 0};
    return ::poll(&state, 1, 0) == 0;
  }

  // httplib::Stream
  bool is_readable() const override { return begin_ < end_ || (wait_for(POLLIN, milliseconds(0)) & POLLIN) != 0; }
  bool is_writable() const override { return !broken_ && is_open(); }
  ssize_t read(char* to, std::size_t size) override {
    if (begin_ == end_ && !fill()) return -1;
    const std::size_t count = std::min({size, end_ - begin_, budget_});
    if (count == 0) return -1;  // larger than it may be
    std::memcpy(to, buffer_ + begin_, count);
    begin_ += count;
    budget_ -= count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* from, std::size_t size) override {
    if (tls_) return write_through_tls(from, size);
    std::size_t sent = 0;
    while (sent < size && !broken_) {
      const ssize_t count = ::send(socket_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (count > 0) sent += static_cast<std::size_t>(count);
      const bool full = count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      if (count < 0 && !full && errno != EINTR) broken_ = true;
      if (full && (wait_for(POLLOUT, options_.send_time) & POLLOUT) == 0) broken_ = true;
    }
    return broken_ ? -1 : static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  int wait_for(short events, milliseconds patience) const {
    pollfd state{.fd = socket_, .events = events, .revents = 0};
    return ::poll(&state, 1, static_cast<int>(patience.count())) > 0 ? state.revents : 0;
  }

  /// Waits for what TLS asked for; false where that is nothing, or takes longer than `patience`.
  bool wait_for_tls(int outcome, milliseconds patience) {
    const int wanted = SSL_get_error(tls_.get(), outcome);
    if (wanted != SSL_ERROR_WANT_READ && wanted != SSL_ERROR_WANT_WRITE) return false;
    timed_out_ = patience.count() <= 0 || wait_for(wanted == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, patience) == 0;
    return !timed_out_;
  }

  bool fill_through_tls() {
    int count = 0;
    do {
      ERR_clear_error();
      count = broken_ ? 0 : SSL_read(tls_.get(), buffer_, sizeof buffer_);
      if (broken_) return false;
    } while (count <= 0 && wait_for_tls(count, std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now())));
    if (count <= 0) return false;
    begin_ = 0;
    end_ = static_cast<std::size_t>(count);
    return true;
  }

  ssize_t write_through_tls(const char* from, std::size_t size) {
    std::size_t sent = 0;
    while (sent < size && !broken_) {
      ERR_clear_error();
      const int piece = static_cast<int>(std::min(size - sent, kReadBytes));
      const int count = SSL_write(tls_.get(), from + sent, piece);
      if (count > 0)
        sent += static_cast<std::size_t>(count);
      else
        broken_ = !wait_for_tls(count, options_.send_time);
    }
    return broken_ ? -1 : static_cast<ssize_t>(size);
  }

  bool fill() {
    if (tls_) return fill_through_tls();
    const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now());
    timed_out_ = left.count() <= 0 || wait_for(POLLIN, left) == 0;
    if (timed_out_) return false;
    const ssize_t count = ::recv(socket_, buffer_, sizeof buffer_, MSG_DONTWAIT);
    if (count <= 0) return false;
    begin_ = 0;
    end_ = static_cast<std::size_t>(count);
    return true;
  }

  int socket_;
  TlsSession tls_{};
  const HttpServerOptions& options_;
  const std::atomic<bool>& stopping_;
  char buffer_[kReadBytes];
  std::size_t begin_ = 0, end_ = 0;
  std::size_t budget_ = 0;
  Clock::time_point deadline_{};
  bool timed_out_ = false;
  bool broken_ = false;
  bool closing_ = false;
};

thread_local Connection* connection_here = nullptr;  // of the request that this thread answers
thread_local bool refuse_here = false;               // more connections than there may be

/// Threads for connections, started as they are needed.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(int most) : most_(static_cast<std::size_t>(most)) {}

  void enqueue(std::function<void()> connection) override {
    if (take(connection)) return;
    refuse_here = true;
    connection();
    refuse_here = false;
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  bool take(const std::function<void()>& connection) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= idle_) {
      if (threads_.size() >= most_) return false;
      try {
        threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        return false;
      }
      ++idle_;
    }
    waiting_.push_back(connection);
    changed_.notify_one();
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::function<void()> connection = std::move(waiting_.front());
      waiting_.pop_front();
      --idle_;
      lock.unlock();
      connection();
      lock.lock();
      ++idle_;
    }
  }

  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool ending_ = false;
};

}  // namespace

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos);
}

class HttpServer::Listener final : public httplib::Server {
 public:
  Listener(const HttpServerOptions& options, HttpHandler handler) : options_(options), handler_(std::move(handler)) {
    new_task_queue = [this] { return new ConnectionThreads(options_.max_connections); };  // the server deletes it
    set_tcp_nodelay(true);
    set_socket_options([](socket_t socket) {  // the library's would let two servers share a port
      const int yes = 1;
      (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return is_admitted(request, response) ? HandlerResponse::Unhandled : HandlerResponse::Handled;
    });
    const Handler without_body = [this](const httplib::Request& request, httplib::Response& response) {
      if (request.has_header("Content-Length")) connection_here->close_after_answer();  // it was not read
      answer(request, "", response);
    };
    const HandlerWithContentReader with_body = [this](const httplib::Request& request, httplib::Response& response,
                                                      const httplib::ContentReader& content) {
      std::string body;
      if (read_body(request, response, content, body)) answer(request, std::move(body), response);
    };
    Get(".*", without_body);
    Options(".*", without_body);
    Post(".*", with_body);
    Put(".*", with_body);
    Patch(".*", with_body);
    Delete(".*", with_body);
    set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      const bool late = connection_here->timed_out();
      refuse(response, late ? 408 : response.status,
             late ? "the request did not arrive in time"
                  : "the request is no HTTP, or its header is larger than " +
                        std::to_string(options_.max_header_bytes) + " bytes");
    });
    set_exception_handler([this](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
      refuse(response, 500, "the request could not be answered");
    });
  }

  Status open() {
    auto tls = tls_settings(options_);
    if (!tls) return tls.error();
    tls_ = std::move(tls).value();
    errno = 0;
    if (options_.port == 0)
      port_ = bind_to_any_port(options_.host);
    else
      port_ = bind_to_port(options_.host, options_.port) ? options_.port : -1;
    if (port_ < 0)
      return Error{"cannot listen on " + options_.host + ":" + std::to_string(options_.port) + ": " +
                   (errno == 0 ? "the address is not one of this machine" : std::strerror(errno))};
    (void)::listen(svr_sock_, kBacklog);  // the library's five are too few for clients that come together
    thread_ = std::thread([this] {
      listen_after_bind();
      ended_ = true;
    });
    return Done{};
  }

  int port() const { return port_; }

  void close() {
    stopping_ = true;
    if (!thread_.joinable()) return;
    while (!is_running() && !ended_) std::this_thread::sleep_for(milliseconds(1));  // it only just starts
    Server::stop();
    thread_.join();
  }

 private:
  // Instead of the library's: it limits neither the time nor the size of a request as a whole.
  bool process_and_close_socket(socket_t socket) override {
    std::optional<NoPipeSignal> quiet;  // OpenSSL writes without MSG_NOSIGNAL
    if (tls_) quiet.emplace();
    Connection connection(socket, options_, stopping_, tls_.get());
    if (refuse_here) {
      connection.send_at_once(bare_answer(503, "Service Unavailable", "too many connections; try again later"));
      return false;
    }
    connection_here = &connection;
    while (!connection.is_closing() && connection.wait_for_request()) {
      connection.begin_request();
      bool closed = false;
      const bool good = process_request(connection, stopping_, closed, [&](httplib::Request& request) {
        request.headers.erase("Accept-Encoding");  // answers are sent as they are
        request.ranges.clear();
        connection.begin_body();
      });
      if (!good && connection.timed_out())
        connection.send_at_once(bare_answer(408, "Request Timeout", "the request did not arrive in time"));
      if (!good || closed) break;
    }
    connection_here = nullptr;
    return true;
  }

  std::string error_body(int status, const std::string& message) const {
    return options_.error_body ? options_.error_body(status, message) : message;
  }

  std::string bare_answer(int status, const std::string& reason, const std::string& message) const {
    const std::string body = error_body(status, message);
    return "HTTP/1.1 " + std::to_string(status) + " " + reason + "\r\nContent-Type: application/json\r\n" +
           (status == 503 ? "Retry-After: 1\r\n" : "") + "Content-Length: " + std::to_string(body.size()) +
           "\r\nConnection: close\r\n\r\n" + body;
  }

  /// What is left of the request is not read.
  void refuse(httplib::Response& response, int status, const std::string& message) const {
    response.status = status;
    response.set_content(error_body(status, message), "application/json");
    response.set_header("Connection", "close");
    if (connection_here != nullptr) connection_here->close_after_answer();
  }

  bool is_admitted(const httplib::Request& request, httplib::Response& response) const {
    if (options_.key.empty() && is_loopback(options_.host) &&
        !is_loopback(host_name(request.get_header_value("Host")))) {
      refuse(response, 403, "Host: expected a loopback address, as the server listens on one; other names need a key");
      return false;
    }
    const auto& open = options_.open_paths;
    if (options_.key.empty() || std::find(open.begin(), open.end(), request.path) != open.end()) return true;
    const std::string given = request.get_header_value("Authorization");
    constexpr std::string_view kBearer = "bearer ";
    const bool bearer = lower_case(std::string_view(given).substr(0, kBearer.size())) == kBearer;
    if (bearer && same_secret(given.substr(kBearer.size()), options_.key)) return true;
    refuse(response, 401, "the key is missing or wrong; expected the header Authorization: Bearer KEY");
    return false;
  }

  bool read_body(const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& content,
                 std::string& body) const {
    if (request.is_multipart_form_data()) {
      refuse(response, 415, "Content-Type: expected application/json");
      return false;
    }
    bool too_large =
        std::strtoull(request.get_header_value("Content-Length").c_str(), nullptr, 10) > options_.max_body_bytes;
    const bool whole = !too_large && content([&](const char* data, std::size_t size) {
      too_large = body.size() + size > options_.max_body_bytes;
      if (!too_large) body.append(data, size);
      return !too_large;
    });
    if (whole) return true;
    if (too_large)
      refuse(response, 413, "the body is larger than " + std::to_string(options_.max_body_bytes) + " bytes");
    else if (connection_here->timed_out())
      refuse(response, 408, "the body did not arrive in time");
    else
      refuse(response, 400, "the body broke off");
    return false;
  }

  void answer(const httplib::Request& from, std::string body, httplib::Response& to) const {
    HttpCall call{.method = from.method, .path = from.path, .headers = {}, .body = std::move(body)};
    for (const auto& [name, value] : from.headers) call.headers.push_back({name, value});
    HttpReply reply;
    try {
      reply = handler_(call, *connection_here);
    } catch (const std::exception& error) {
      log_warning(call.method + " " + call.path + ": " + error.what());
      return refuse(to, 500, "the request could not be answered");
    }
    to.status = reply.status;
    for (const auto& [name, value] : reply.headers) to.set_header(name, value);
    if (!reply.pieces) return to.set_content(reply.body, reply.content_type);
    to.set_chunked_content_provider(reply.content_type,
                                    [pieces = std::move(reply.pieces)](std::size_t, httplib::DataSink& sink) {
                                      try {
                                        const std::optional<std::string> piece = pieces();
                                        if (piece) return sink.write(piece->data(), piece->size());
                                        sink.done();
                                        return true;
                                      } catch (const std::exception& error) {
                                        log_warning(std::string("an answer broke off: ") + error.what());
                                        return false;
                                      }
                                    });
  }

  HttpServerOptions options_;
  HttpHandler handler_;
  TlsSettings tls_{};
  int port_ = -1;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}
HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options, HttpHandler handler) {
  auto listener = std::make_unique<Listener>(options, std::move(handler));
  if (const Status status = listener->open(); !status) return status.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listener)));
}

int HttpServer::port() const { return listener_->port(); }
void HttpServer::stop() { listener_->close(); }

}  // namespace carnot
