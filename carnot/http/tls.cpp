#include "carnot/http/tls.h"

#include <openssl/err.h>

namespace carnot {

Result<TlsSettings> tls_settings(const std::string& certificate, const std::string& private_key) {
  if (certificate.empty()) return TlsSettings();
  ERR_clear_error();
  const auto failed = [](const std::string& file) {
    const char* why = ERR_reason_error_string(ERR_peek_last_error());
    return Error{file + ": " + (why == nullptr ? "cannot be used" : why) +
                 "; expected PEM files of a certificate and of its private key"};
  };
  TlsSettings settings(SSL_CTX_new(TLS_server_method()));
  if (!settings) return failed("TLS");
  SSL_CTX_set_min_proto_version(settings.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(settings.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(settings.get(), certificate.c_str()) != 1) return failed(certificate);
  if (SSL_CTX_use_PrivateKey_file(settings.get(), private_key.c_str(), SSL_FILETYPE_PEM) != 1)
    return failed(private_key);
  return settings;
}

}  // namespace carnot
