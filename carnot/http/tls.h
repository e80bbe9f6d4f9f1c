// http/tls.h -- what OpenSSL has allocated, freed on every way out, and a server's settings.
#pragma once

#include <openssl/ssl.h>

#include <memory>

#include "carnot/core/base/result.h"

namespace carnot {

struct FreeTls {
  void operator()(SSL_CTX* settings) const { SSL_CTX_free(settings); }
  void operator()(SSL* session) const { SSL_free(session); }
};
using TlsSettings = std::unique_ptr<SSL_CTX, FreeTls>;
using TlsSession = std::unique_ptr<SSL, FreeTls>;

/// Of a server with these PEM files; null if `certificate` is empty.
Result<TlsSettings> tls_settings(const std::string& certificate, const std::string& private_key);

}  // namespace carnot
