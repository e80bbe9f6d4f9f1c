// http/client.h -- one request to an HTTP server, and its answer, within a time and a size.
//
// Every exchange has its own connection. Certificates are checked against the system's. Redirects are not
// followed: a header with a key would go to the host that the answer names. Proxies are not used.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "carnot/core/base/result.h"
#include "carnot/http/headers.h"
#include "carnot/http/url.h"

namespace carnot {

struct HttpRequest {
  std::string method = "GET";
  Url url{};
  HttpHeaders headers{};
  std::string body{};  ///< JSON, unless a header says its Content-Type
};

struct HttpAnswer {
  int status = 0;
  HttpHeaders headers{};
  std::string body{};  ///< decompressed

  bool is_success() const { return status >= 200 && status < 300; }
};

struct HttpLimits {
  /// For the whole exchange with one address of the host. Looking up its name is not included.
  std::chrono::milliseconds time{60'000};
  std::size_t answer_bytes = std::size_t{16} << 20;  ///< of the body
  std::stop_token cancel{};                          ///< ends the exchange; any thread
};

/// Gets the body of a successful answer as it comes, piece by piece, with the answer so far: status and headers. False
/// ends the exchange; an exception does too, and reaches the caller.
using OnPiece = std::function<bool(const HttpAnswer& so_far, std::string_view piece)>;

/// Sends the request and waits for its answer, whatever its status. The error says method, address and what went wrong;
/// no header, query or body is in it. Any thread.
Result<HttpAnswer> http_exchange(const HttpRequest& request, const HttpLimits& limits = {});

/// The same for an answer that comes in pieces (http/event_stream.h reads events from them). The body of an answer that
/// is not successful is in the result; where `on_piece` ended the exchange, the result holds status and headers.
Result<HttpAnswer> http_stream(const HttpRequest& request, const HttpLimits& limits, const OnPiece& on_piece);

}  // namespace carnot
