#include "carnot/http/request_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "carnot/core/base/printable.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

using Problem = std::optional<HttpProblem>;

constexpr std::size_t kShown = 80;

HttpProblem bad(std::string message) { return {.status = 400, .message = std::move(message)}; }

std::string shown(std::string_view text) {
  return "'" + printable_line(text.substr(0, kShown)) + (text.size() > kShown ? "...'" : "'");
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

/// Nothing if a '%' is not followed by two hexadecimal digits.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (; !text.empty(); text.remove_prefix(1)) {
    if (text.front() != '%') {
      out += text.front();
      continue;
    }
    unsigned byte = 0;
    const char* end = text.data() + std::min<std::size_t>(3, text.size());
    if (text.size() < 3 || std::from_chars(text.data() + 1, end, byte, 16).ptr != end) return std::nullopt;
    out += static_cast<char>(byte);
    text.remove_prefix(2);
  }
  return out;
}

Problem parse_target(std::string_view target, RequestHead& head) {
  const bool printable = std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (target.empty() || !printable) return bad("the request line: expected METHOD TARGET HTTP/1.1");
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower_case(target.substr(0, scheme.size())) != scheme) continue;
    target.remove_prefix(scheme.size());
    head.host = lower_case(target.substr(0, target.find_first_of("/?")));
    target.remove_prefix(head.host.size());
    if (!target.starts_with('/')) target = "/";
    break;
  }
  if (!target.starts_with('/') && target != "*") return bad("the target: expected a path, found " + shown(target));
  const auto path = percent_decoded(target.substr(0, target.find_first_of("?#")));
  if (!path) return bad("the target: expected two hexadecimal digits after each '%', found " + shown(target));
  head.path = *path;
  return std::nullopt;
}

std::vector<std::string_view> values_of(const HttpHeaders& headers, std::string_view name) {
  std::vector<std::string_view> values;
  for (const HttpHeader& header : headers)
    if (lower_case(header.name) == name) values.emplace_back(header.value);
  return values;
}

/// Whether the lists of that name have the word.
bool lists(const HttpHeaders& headers, std::string_view name, std::string_view word) {
  for (std::string_view rest : values_of(headers, name))
    while (!rest.empty()) {
      const std::string_view item = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(item.size() + 1, rest.size()));
      if (lower_case(without_blanks(item)) == word) return true;
    }
  return false;
}

Problem find_host(RequestHead& head) {
  const auto hosts = values_of(head.headers, "host");
  if (hosts.size() > 1 || (hosts.empty() && !head.is_http_1_0))
    return bad("Host: expected one, found " + std::to_string(hosts.size()));
  if (hosts.empty() || !head.host.empty()) return std::nullopt;
  head.host = lower_case(hosts[0]);
  if (head.host.find_first_of("/?#@, \t") != std::string::npos)
    return bad("Host: expected HOST or HOST:PORT, found " + shown(hosts[0]));
  return std::nullopt;
}

Problem find_length(RequestHead& head) {
  const auto lengths = values_of(head.headers, "content-length");
  const auto codings = values_of(head.headers, "transfer-encoding");
  if (!lengths.empty() && !codings.empty())
    return bad("found both Content-Length and Transfer-Encoding; expected one of them");
  if (codings.size() == 1 && lower_case(codings[0]) == "chunked" && !head.is_http_1_0) {
    head.is_chunked = true;
    return std::nullopt;
  }
  if (head.is_http_1_0 && !codings.empty()) return bad("Transfer-Encoding: expected Content-Length with HTTP/1.0");
  if (!codings.empty())
    return HttpProblem{.status = 501, .message = "Transfer-Encoding: expected chunked, found " + shown(codings[0])};
  if (lengths.empty()) return std::nullopt;
  const std::string_view length = lengths[0];
  const bool digits = !length.empty() && length.find_first_not_of("0123456789") == std::string_view::npos;
  if (lengths.size() > 1 || !digits)
    return bad("Content-Length: expected one number, found " +
               (lengths.size() > 1 ? std::to_string(lengths.size()) + " of them" : shown(length)));
  if (std::from_chars(length.data(), length.data() + length.size(), head.content_length).ec != std::errc{})
    head.content_length = std::numeric_limits<std::size_t>::max();
  return std::nullopt;
}

using Problem = std::optional<HttpProblem>;

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::size_t kMaxChunkLine = 1024;

}  // namespace

Problem parse_request_line(std::string_view line, RequestHead& head) {
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  const std::string_view method = line.substr(0, first);
  if (last == first || !is_valid_header({.name = std::string(method), .value = {}}))
    return bad("the request line: expected METHOD TARGET HTTP/1.1, found " + shown(line));
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    const bool other = version.size() == 8 && version.starts_with("HTTP/");
    return HttpProblem{.status = other ? 505 : 400,
                       .message = "the version: expected HTTP/1.1, found " + shown(version)};
  }
  head.method = method;
  head.is_http_1_0 = version == "HTTP/1.0";
  return parse_target(line.substr(first + 1, last - first - 1), head);
}

Problem parse_header_line(std::string_view line, HttpHeaders& headers) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bad("a header line: expected NAME: VALUE, found " + shown(line));
  HttpHeader header{.name = std::string(line.substr(0, colon)),
                    .value = std::string(without_blanks(line.substr(colon + 1)))};
  if (!is_valid_header(header))
    return bad("a header line: expected a name without blanks and a value without control characters, found " +
               shown(line));
  headers.push_back(std::move(header));
  return std::nullopt;
}

Problem finish_head(RequestHead& head) {
  if (const Problem problem = find_host(head)) return problem;
  if (const Problem problem = find_length(head)) return problem;
  head.keeps_connection = !head.is_http_1_0 && !lists(head.headers, "connection", "close");
  const std::string* expected = find_header(head.headers, "Expect");
  if (expected == nullptr || head.is_http_1_0) return std::nullopt;
  if (lower_case(*expected) != "100-continue")
    return HttpProblem{.status = 417, .message = "Expect: expected 100-continue, found " + shown(*expected)};
  head.awaits_continue = head.has_body();
  return std::nullopt;
}

std::optional<std::size_t> parse_chunk_size(std::string_view line) {
  const std::string_view digits = without_blanks(line.substr(0, line.find(';')));
  if (!is_valid_header({.name = "chunk", .value = std::string(line)})) return std::nullopt;
  if (digits.empty() || !line.starts_with(digits)) return std::nullopt;
  std::size_t size = 0;
  const char* end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, size, 16);
  if (read.ptr != end) return std::nullopt;
  return read.ec == std::errc{} ? size : std::numeric_limits<std::size_t>::max();
}

Problem RequestReader::fill() {
  char bytes[kReadBytes];
  const std::size_t count = source_.read(bytes, sizeof bytes);
  if (count == 0) return source_.why_ended();
  buffer_.erase(0, begin_);
  begin_ = 0;
  buffer_.append(bytes, count);
  return std::nullopt;
}

Problem RequestReader::read_line(std::string& line, std::size_t limit, const HttpProblem& too_long) {
  for (std::size_t searched = 0;;) {
    const std::size_t end = buffer_.find('\n', begin_ + searched);
    const std::size_t size = std::min(end, buffer_.size()) - begin_;
    if (size > limit) return too_long;
    if (end != std::string::npos) {
      if (size == 0 || buffer_[end - 1] != '\r') return HttpProblem{.message = "expected lines that end in CR LF"};
      line.assign(buffer_, begin_, size - 1);
      begin_ = end + 1;
      return std::nullopt;
    }
    searched = size;
    if (const Problem problem = fill()) return problem;
  }
}

Problem RequestReader::read_fields(HttpHeaders& fields) {
  const HttpProblem too_long{.status = 431,
                             .message = "the header is larger than " + std::to_string(limits_.header_bytes) + " bytes"};
  std::size_t left = limits_.header_bytes;
  for (std::string line;;) {
    if (const Problem problem = read_line(line, left, too_long)) return problem;
    if (line.empty()) return std::nullopt;
    left -= line.size() + 1;
    if (const Problem problem = parse_header_line(line, fields)) return problem;
  }
}

Problem RequestReader::read_head(RequestHead& head) {
  const HttpProblem too_long{
      .status = 414, .message = "the request line is longer than " + std::to_string(kMaxRequestLine) + " bytes"};
  std::string line;
  if (const Problem problem = read_line(line, kMaxRequestLine, too_long)) return problem;
  if (line.empty())  // some clients send one after a body
    if (const Problem problem = read_line(line, kMaxRequestLine, too_long)) return problem;
  if (const Problem problem = parse_request_line(line, head)) return problem;
  if (const Problem problem = read_fields(head.headers)) return problem;
  return finish_head(head);
}

Problem RequestReader::read_bytes(std::string& body, std::size_t count) {
  for (;;) {
    const std::size_t here = std::min(count, buffer_.size() - begin_);
    body.append(buffer_, begin_, here);
    begin_ += here;
    count -= here;
    if (count == 0) return std::nullopt;
    if (const Problem problem = fill()) return problem;
  }
}

Problem RequestReader::read_body(const RequestHead& head, std::string& body) {
  if (head.is_chunked) return read_chunks(body);
  if (head.content_length > limits_.body_bytes)
    return HttpProblem{.status = 413,
                       .message = "the body is larger than " + std::to_string(limits_.body_bytes) + " bytes"};
  body.reserve(head.content_length);
  return read_bytes(body, head.content_length);
}

Problem RequestReader::read_chunks(std::string& body) {
  const HttpProblem malformed{.message =
                                  "a chunk: expected its size in hexadecimal digits, CR LF, that many bytes and CR LF"};
  for (std::string line;;) {
    if (const Problem problem = read_line(line, kMaxChunkLine, malformed)) return problem;
    const auto size = parse_chunk_size(line);
    if (!size) return malformed;
    if (*size > limits_.body_bytes - body.size())
      return HttpProblem{.status = 413,
                         .message = "the body is larger than " + std::to_string(limits_.body_bytes) + " bytes"};
    if (*size == 0) break;
    if (const Problem problem = read_bytes(body, *size)) return problem;
    if (const Problem problem = read_line(line, kMaxChunkLine, malformed)) return problem;
    if (!line.empty()) return malformed;
  }
  HttpHeaders trailers;
  return read_fields(trailers);
}

}  // namespace carnot
