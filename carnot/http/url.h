// http/url.h -- the parts of an http or https address.
#pragma once

#include <string>
#include <string_view>

#include "carnot/core/base/result.h"

namespace carnot {

struct Url {
  bool secure = false;
  std::string host{};  ///< a name in lower case, or an address; IPv6 without its brackets
  int port = 80;
  std::string path = "/";  ///< percent-encoded
  std::string query{};     ///< percent-encoded, without '?'

  /// What a request asks for: path and query.
  std::string target() const { return query.empty() ? path : path + "?" + query; }

  /// The address whose path is this one's, then `/below`; the query stays: of https://a/v1?x=1 and "models",
  /// https://a/v1/models?x=1.
  Url append(std::string_view below) const;

  /// For messages: without the query, which may hold a key.
  std::string shown() const;
};

/// Reads http://HOST[:PORT][/PATH][?QUERY]. Blanks and bytes beyond ASCII in path and query become %XX; a fragment is
/// left out. Refuses user and password: they would be in every log. The error says what was expected, and never shows
/// what may be secret.
Result<Url> parse_url(std::string_view text);

}  // namespace carnot
