#include "carnot/remote_rollouts/transport/address.h"

#include <algorithm>
#include <cstdlib>

#include "carnot/core/base/strings.h"
#include "carnot/http/url.h"

namespace carnot {
namespace {

constexpr std::size_t kMaxName = 32;
constexpr int kDefaultPort = 4222;

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && std::ranges::all_of(text, [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

}  // namespace

Result<BrokerAddress> parse_broker_address(std::string_view text, const std::string& where) {
  const auto expected = [&](const std::string& why) {
    return Error{where + ": " + why +
                 "; expected nats://HOST:PORT or tls://HOST:PORT, and /NAME after it where "
                 "several trainers share the server"};
  };
  const bool secure = text.starts_with("tls://");
  if (!secure && !text.starts_with("nats://")) return expected("is no address of a NATS server");
  const std::string_view rest = text.substr(secure ? 6 : 7);
  if (rest.find('@') != std::string_view::npos)
    return Error{where +
                 ": has a user or a password in it, which would be in every log; expected them in CARNOT_NATS_USER and "
                 "CARNOT_NATS_PASSWORD, or a credentials file"};
  // Host and port are read as those of an HTTP address are.
  const std::string_view host = rest.substr(0, rest.find('/'));
  const auto url = parse_url("https://" + std::string(host));
  if (!url || host.find_first_of("?#%") != std::string_view::npos)
    return expected("has no host and port that can be read");
  BrokerAddress address;
  const bool has_port = host.find(':', host.starts_with('[') ? host.find(']') : 0) != std::string_view::npos;
  const bool is_ipv6 = url->host.find(':') != std::string::npos;
  address.server = (secure ? "tls://" : "nats://") + (is_ipv6 ? "[" + url->host + "]" : url->host) + ":" +
                   std::to_string(has_port ? url->port : kDefaultPort);
  if (host.size() == rest.size() || rest.size() == host.size() + 1) return address;
  address.name = rest.substr(host.size() + 1);
  if (!is_name(address.name)) return expected("a name has up to 32 letters, digits, '-' and '_'");
  return address;
}

Result<BrokerOptions> broker_options(const BrokerAddress& address, const BrokerKeys& keys, const std::string& client) {
  BrokerOptions options{.url = address.server,
                        .name = client,
                        .credentials = keys.credentials,
                        .user = variable("CARNOT_NATS_USER"),
                        .password = variable("CARNOT_NATS_PASSWORD"),
                        .token = variable("CARNOT_NATS_TOKEN"),
                        .authority = keys.authority,
                        .certificate = keys.certificate,
                        .private_key = keys.private_key};
  const bool needs_tls = !keys.authority.empty() || !keys.certificate.empty();
  if (needs_tls && !address.server.starts_with("tls://"))
    return Error{address.server + ": certificates are given, but the address is not one of TLS; expected tls://"};
  if (keys.certificate.empty() != keys.private_key.empty())
    return Error{address.server + ": a certificate and its private key come together; only one of them is given"};
  return options;
}

}  // namespace carnot
