// testing/http_exchange.h -- an HTTP server of a test, and requests to it, byte by byte.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "carnot/core/base/descriptor.h"
#include "carnot/http/server.h"

namespace carnot::testing {

inline const std::string kClose = "Connection: close\r\n";

/// A connection to a port of this machine.
inline Descriptor connected(int port) {
  Descriptor client(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return client;
}

inline void send(const Descriptor& to, const std::string& text) {
  EXPECT_EQ(::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
}

/// Until the server closes, or has said `last`.
inline std::string received(const Descriptor& from, const std::string& last = "\n\n\n") {
  std::string all;
  char bytes[4096];
  for (ssize_t count = 0; !all.ends_with(last) && (count = ::recv(from.get(), bytes, sizeof bytes, 0)) > 0;)
    all.append(bytes, static_cast<std::size_t>(count));
  return all;
}

inline std::string request_text(const std::string& method, const std::string& path, const std::string& body = "",
                                const std::string& headers = "") {
  const std::string type =
      headers.find("Content-Type") == std::string::npos ? "Content-Type: application/json\r\n" : "";
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" + type + headers +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body;
}

/// One request on its own connection, closed afterwards.
inline std::string exchanged(int port, const std::string& request) {
  const Descriptor client = connected(port);
  send(client, request);
  return received(client);
}

/// Says what it was asked.
inline HttpReply echo(const HttpCall& call, const HttpConnection&) {
  return {.body = call.method + " " + call.path + " '" + call.body + "'"};
}

inline HttpServerOptions server_options() {
  return {.error_body = [](int status, const std::string& message) { return std::to_string(status) + "! " + message; }};
}

inline std::unique_ptr<HttpServer> started(const HttpServerOptions& with, HttpHandler handler = echo) {
  auto server = HttpServer::start(with, std::move(handler));
  EXPECT_TRUE(server.ok());
  return std::move(server).value();
}

}  // namespace carnot::testing
