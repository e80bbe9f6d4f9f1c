#include "carnot/http/url.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "carnot/core/base/printable.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

constexpr std::size_t kMaxUrlBytes = 8000;
constexpr int kMaxPort = 65535;

bool is_between(char c, char low, char high) { return low <= c && c <= high; }

bool is_host_character(char c) {
  return is_between(c, 'a', 'z') || is_between(c, '0', '9') || c == '-' || c == '.' || c == '_';
}

bool is_ipv6_character(char c) { return is_between(c, 'a', 'f') || is_between(c, '0', '9') || c == ':' || c == '.'; }

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && c != '"' && c != '<' && c != '>') {
      out += c;
      continue;
    }
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

/// `text` up to the first of `ends`, which is taken off.
std::string_view take_until(std::string_view& text, std::string_view ends) {
  const std::string_view part = text.substr(0, text.find_first_of(ends));
  text.remove_prefix(part.size());
  return part;
}

std::optional<int> parse_port(std::string_view text) {
  int port = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc{} || end != text.data() + text.size() || port < 1 || port > kMaxPort) return std::nullopt;
  return port;
}

/// Sets host and port; says what is wrong with them.
std::string read_authority(std::string_view text, Url& url) {
  std::string_view host = text, port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return "expected ']' after an IPv6 address";
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }
  url.host = lower_case(host);
  const auto fits = text.starts_with('[') ? is_ipv6_character : is_host_character;
  if (url.host.empty() || !std::all_of(url.host.begin(), url.host.end(), fits))
    return "expected a host name in ASCII (xn--... where it has other letters), or an address";
  if (port.empty()) return "";
  const auto number = port.starts_with(':') ? parse_port(port.substr(1)) : std::nullopt;
  if (!number) return "expected a port from 1 to " + std::to_string(kMaxPort) + " after the host";
  url.port = *number;
  return "";
}

}  // namespace

Url Url::append(std::string_view below) const {
  Url out = *this;
  while (out.path.ends_with('/')) out.path.pop_back();
  if (!below.starts_with('/')) out.path += '/';
  out.path += percent_encoded(below);
  return out;
}

std::string Url::shown() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return (secure ? "https://" : "http://") + name + (port == (secure ? 443 : 80) ? "" : ":" + std::to_string(port)) +
         path + (query.empty() ? "" : "?...");
}

Result<Url> parse_url(std::string_view text) {
  constexpr std::string_view kExpected = "expected http://HOST[:PORT]/PATH or https://...";
  if (text.size() > kMaxUrlBytes)
    return Error{"an address of " + std::to_string(text.size()) + " bytes; expected at most " +
                 std::to_string(kMaxUrlBytes)};
  if (std::any_of(text.begin(), text.end(), is_control))
    return Error{"an address with a control character in it; " + std::string(kExpected)};

  Url url;
  std::string_view rest = trim(text);
  const std::size_t scheme_end = rest.find("://");
  const std::string scheme = lower_case(rest.substr(0, scheme_end == std::string_view::npos ? 0 : scheme_end));
  url.secure = scheme == "https";
  url.port = url.secure ? 443 : 80;
  // Before a user's name is known to be absent, nothing of the text is shown.
  const std::string_view before_path = rest.substr(
      0, scheme_end == std::string_view::npos ? rest.find_first_of("/?#") : rest.find_first_of("/?#", scheme_end + 3));
  if (before_path.find('@') != std::string_view::npos)
    return Error{"an address with a user or a password in it; expected a host after the scheme"};
  const std::string shown = '"' + printable_line(rest.substr(0, rest.find_first_of("?#"))) + '"';
  if (scheme != "http" && scheme != "https") return Error{shown + ": " + std::string(kExpected)};

  rest.remove_prefix(scheme_end + 3);
  if (const std::string problem = read_authority(take_until(rest, "/?#"), url); !problem.empty())
    return Error{shown + ": " + problem};
  url.path = percent_encoded(take_until(rest, "?#"));
  if (url.path.empty()) url.path = "/";
  if (rest.starts_with('?')) {
    rest.remove_prefix(1);
    url.query = percent_encoded(take_until(rest, "#"));
  }
  return url;
}

}  // namespace carnot
