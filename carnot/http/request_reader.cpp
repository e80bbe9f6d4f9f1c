#include "carnot/http/request_reader.h"

#include <algorithm>

namespace carnot {
namespace {

using Problem = std::optional<HttpProblem>;

constexpr std::size_t kReadBytes = std::size_t{16} << 10;
constexpr std::size_t kMaxChunkLine = 1024;

}  // namespace

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
