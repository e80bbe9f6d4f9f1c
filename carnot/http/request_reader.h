// http/request_reader.h -- requests from a stream of bytes, one after the other, within limits of size, read
// strictly (RFC 9112): nothing that two readers could take for requests of different length is accepted.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "carnot/http/headers.h"

namespace carnot {

/// Why a request is refused, and with which status.
struct HttpProblem {
  int status = 400;
  std::string message{};
};

/// The longest request line that is read; a longer one is answered with 414.
inline constexpr std::size_t kMaxRequestLine = 8192;

struct RequestHead {
  std::string method{};
  std::string path{};  ///< percent-decoded, without the query
  HttpHeaders headers{};
  std::string host{};              ///< with the port, of the target or the header Host; in lower case
  bool is_http_1_0 = false;        ///< its sender knows neither chunks nor interim answers
  bool keeps_connection = true;    ///< after the answer
  bool awaits_continue = false;    ///< the body comes once "100 Continue" was sent
  bool is_chunked = false;         ///< how the body is sent
  std::size_t content_length = 0;  ///< of a body that is not chunked; 0: there is no body

  bool has_body() const { return is_chunked || content_length > 0; }
};

/// Reads a line without its end into `head`: the request line, then one line for each header field. Returns what is
/// wrong with it.
std::optional<HttpProblem> parse_request_line(std::string_view line, RequestHead& head);
std::optional<HttpProblem> parse_header_line(std::string_view line, HttpHeaders& headers);

/// All lines are read: finds out what the header fields say about host, body and connection.
std::optional<HttpProblem> finish_head(RequestHead& head);

/// The size of a chunk from the line before it; extensions are passed over. Nothing if it is malformed.
std::optional<std::size_t> parse_chunk_size(std::string_view line);

/// Where bytes come from.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Waits for bytes; how many there were, at most `size`. 0: no more will come.
  virtual std::size_t read(char* to, std::size_t size) = 0;
  /// Why no more came.
  virtual HttpProblem why_ended() const = 0;
};

struct RequestLimits {
  std::size_t header_bytes = 0;  ///< of all header lines together
  std::size_t body_bytes = 0;
};

class RequestReader {
 public:
  /// `source` must outlive the reader.
  RequestReader(ByteSource& source, const RequestLimits& limits) : source_(source), limits_(limits) {}

  /// Bytes after the last request have already come.
  bool has_bytes() const { return begin_ < buffer_.size(); }

  /// Each returns why the request is refused. After that, or where the body was not read, nothing more can be read.
  std::optional<HttpProblem> read_head(RequestHead& head);
  /// Adds the body to `body`, without its chunks and trailers.
  std::optional<HttpProblem> read_body(const RequestHead& head, std::string& body);

 private:
  std::optional<HttpProblem> fill();
  std::optional<HttpProblem> read_line(std::string& line, std::size_t limit, const HttpProblem& too_long);
  std::optional<HttpProblem> read_fields(HttpHeaders& fields);
  std::optional<HttpProblem> read_bytes(std::string& body, std::size_t count);
  std::optional<HttpProblem> read_chunks(std::string& body);

  ByteSource& source_;
  RequestLimits limits_;
  std::string buffer_{};
  std::size_t begin_ = 0;
};

}  // namespace carnot
