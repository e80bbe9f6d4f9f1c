#include "testing/local_http_server.h"

#include <arpa/inet.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace carnot::testing {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

ReceivedRequest received(const httplib::Request& request) {
  ReceivedRequest out{.method = request.method, .target = request.target, .headers = {}, .body = request.body};
  for (const auto& [name, value] : request.headers) out.headers[lower(name)] = value;
  return out;
}

}  // namespace

struct LocalHttpServer::State {
  httplib::Server server{};
  int port = 0;
  std::thread thread{};
};

LocalHttpServer::LocalHttpServer(std::function<GivenAnswer(const ReceivedRequest&)> answer)
    : state_(std::make_unique<State>()) {
  state_->server.new_task_queue = [] { return new httplib::ThreadPool(16); };
  const auto handler = [answer = std::move(answer)](const httplib::Request& request, httplib::Response& response) {
    const GivenAnswer given = answer(received(request));
    response.status = given.status;
    response.set_content(given.body, given.type);
    for (const auto& [name, value] : given.headers) response.set_header(name, value);
  };
  state_->server.Get(".*", handler).Post(".*", handler).Put(".*", handler).Delete(".*", handler);
  state_->port = state_->server.bind_to_any_port("127.0.0.1");
  if (state_->port <= 0) throw std::runtime_error("no port for a server");
  state_->thread = std::thread([this] { state_->server.listen_after_bind(); });
  while (!state_->server.is_running()) std::this_thread::yield();
}

LocalHttpServer::~LocalHttpServer() {
  state_->server.stop();
  state_->thread.join();
}

std::string LocalHttpServer::url(const std::string& path) const {
  return "http://127.0.0.1:" + std::to_string(state_->port) + path;
}

struct RawServer::State {
  int listener = -1;
  int port = 0;
  std::atomic<bool> over = false;
  std::function<void(int)> serve{};
  std::thread thread{};

  void run() {
    while (!over) {
      const int connection = ::accept(listener, nullptr, nullptr);
      if (connection < 0) continue;
      if (!over) serve(connection);
      ::close(connection);
    }
  }
};

RawServer::RawServer(std::function<void(int)> serve) : state_(std::make_unique<State>()) {
  state_->serve = std::move(serve);
  state_->listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (::bind(state_->listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(state_->listener, 8) != 0 ||
      ::getsockname(state_->listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no port for a server");
  state_->port = ntohs(address.sin_port);
  state_->thread = std::thread([this] { state_->run(); });
}

RawServer::~RawServer() {
  state_->over = true;
  ::shutdown(state_->listener, SHUT_RDWR);
  state_->thread.join();
  ::close(state_->listener);
}

std::string RawServer::url() const { return "http://127.0.0.1:" + std::to_string(state_->port); }

void read_head(int descriptor) {
  std::string head;
  for (char c = 0; !head.ends_with("\r\n\r\n") && ::recv(descriptor, &c, 1, 0) == 1;) head += c;
}

bool write_all(int descriptor, const std::string& bytes) {
  return ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

}  // namespace carnot::testing
