// testing/local_http_server.h -- an HTTP server on this machine whose answers come from a test.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace carnot::testing {

struct ReceivedRequest {
  std::string method{};
  std::string target{};                          ///< path and query, as they were sent
  std::map<std::string, std::string> headers{};  ///< names in lower case
  std::string body{};
};

struct GivenAnswer {
  int status = 200;
  std::string body{};
  std::string type = "application/json";
  std::map<std::string, std::string> headers{};
};

class LocalHttpServer {
 public:
  /// Answers each request with `answer`, on several threads.
  explicit LocalHttpServer(std::function<GivenAnswer(const ReceivedRequest&)> answer);
  ~LocalHttpServer();

  /// "http://127.0.0.1:4711" and `path`.
  std::string url(const std::string& path = "") const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A server that passes each connection, one after the other, to a test's function: what it writes need not be HTTP.
class RawServer {
 public:
  /// `serve` gets the connection's descriptor; it is closed afterwards.
  explicit RawServer(std::function<void(int descriptor)> serve);
  ~RawServer();

  std::string url() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads the head of a request, up to its empty line.
void read_head(int descriptor);

/// Writes all of it; false if the other side has closed the connection.
bool write_all(int descriptor, const std::string& bytes);

}  // namespace carnot::testing
