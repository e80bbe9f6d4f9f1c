// http/headers.h -- header fields of a request or an answer, in their order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace carnot {

struct HttpHeader {
  std::string name{};
  std::string value{};
};
using HttpHeaders = std::vector<HttpHeader>;

/// The value of the first header of that name, whatever its case; null if it is missing.
const std::string* find_header(const HttpHeaders& headers, std::string_view name);

/// Whether it can be sent: the name is a token (RFC 9110), the value has no line breaks or other control characters.
bool is_valid_header(const HttpHeader& header);

}  // namespace carnot
