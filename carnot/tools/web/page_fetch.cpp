#include "carnot/tools/web/page_fetch.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "carnot/core/base/strings.h"
#include "carnot/tools/web/page_text.h"

namespace carnot {
namespace {

constexpr int kMostRedirects = 5;
constexpr std::size_t kMostAnswerBytes = std::size_t{8} << 20;

struct AddressRange {
  std::uint32_t first = 0;
  int bits = 0;
};

constexpr AddressRange network(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, int bits) {
  return {.first = a << 24 | b << 16 | c << 8 | d, .bits = bits};
}

bool is_public_v4(std::uint32_t address) {
  // RFC 6890: this network, private, shared, loopback, link-local, special use, private, tests, multicast and beyond.
  static constexpr std::array kSpecial = {
      network(0, 0, 0, 0, 8),     network(10, 0, 0, 0, 8),      network(100, 64, 0, 0, 10),
      network(127, 0, 0, 0, 8),   network(169, 254, 0, 0, 16),  network(172, 16, 0, 0, 12),
      network(192, 0, 0, 0, 24),  network(192, 0, 2, 0, 24),    network(192, 168, 0, 0, 16),
      network(198, 18, 0, 0, 15), network(198, 51, 100, 0, 24), network(203, 0, 113, 0, 24),
      network(224, 0, 0, 0, 4),   network(240, 0, 0, 0, 4)};
  return std::ranges::none_of(kSpecial, [&](const AddressRange& range) {
    return (address >> (32 - range.bits)) == (range.first >> (32 - range.bits));
  });
}

std::uint32_t v4_in(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
}

/// Global unicast is 2000::/3; addresses that carry one of IPv4 are what that is.
bool is_public_v6(const in6_addr& address) {
  const unsigned char* bytes = address.s6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return is_public_v4(v4_in(bytes + 12));
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return is_public_v4(v4_in(bytes + 2));
  return (bytes[0] & 0xE0) == 0x20;
}

bool is_public(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    return is_public_v4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family != AF_INET6) return false;
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  return is_public_v6(v6.sin6_addr);
}

Status check_public(const Url& url) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(url.host.c_str(), nullptr, &hints, &found) != 0) return Error{"the host is not known"};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next)
    if (!is_public(*at->ai_addr)) return Error{"the address is not one of the public internet"};
  return Done{};
}

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

Result<Url> redirected(const Url& from, const std::string& location) {
  const std::string to(trim(location));
  if (to.starts_with("http://") || to.starts_with("https://")) return parse_url(to);
  if (to.starts_with("//")) return parse_url((from.secure ? "https:" : "http:") + to);
  Url base = from;
  base.query.clear();
  if (to.starts_with('/')) {
    base.path = "/";
  } else {
    base.path = base.path.substr(0, base.path.rfind('/') + 1);
  }
  return parse_url(base.shown() + (to.starts_with('/') ? to.substr(1) : to));
}

}  // namespace

bool is_public_address(const std::string& address) {
  in_addr v4{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) return is_public_v4(ntohl(v4.s_addr));
  in6_addr v6{};
  return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && is_public_v6(v6);
}

Result<std::string> fetch_page(const std::string& text, const PageFetch& how, Tool::Deadline deadline) {
  auto url = parse_url(text);
  if (!url) return url.error();
  const auto until = std::min(deadline, std::chrono::steady_clock::now() + how.time);
  for (int redirects = 0;; ++redirects) {
    if (!how.private_addresses) CARNOT_RETURN_IF_ERROR(check_public(*url));
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return Error{"no answer in time"};
    CARNOT_ASSIGN_OR_RETURN(const auto answer,
                            http_exchange({.url = *url,
                                           .headers = {{"Accept", "text/html,application/xhtml+xml,text/plain;q=0.9"},
                                                       {"Accept-Language", "en;q=0.9,*;q=0.5"},
                                                       {"User-Agent", "Mozilla/5.0 (compatible; Carnot)"}}},
                                          {.time = left, .answer_bytes = kMostAnswerBytes}));
    const std::string* location = find_header(answer.headers, "Location");
    if (is_redirect(answer.status) && location != nullptr) {
      if (redirects == kMostRedirects) return Error{"more than five redirects"};
      url = redirected(*url, *location);
      if (!url) return url.error();
      continue;
    }
    if (!answer.is_success()) return Error{"status " + std::to_string(answer.status)};
    return page_text(answer);
  }
}

}  // namespace carnot
