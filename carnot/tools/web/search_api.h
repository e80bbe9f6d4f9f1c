// tools/web/search_api.h -- requests to APIs that search the web, and their answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/http/client.h"
#include "carnot/tools/web/options.h"

namespace carnot {

struct WebResult {
  std::string title{};
  std::string url{};
  std::string snippet{};
  std::string date{};  ///< as the API says it; often empty

  bool operator==(const WebResult&) const = default;
};

/// A query without its quotes and the blanks around it: what is requested, and the key in the cache (as ARPO's code).
std::string web_query(std::string_view text);

/// Where requests go: options.url, or the service's own address. REQUIRES: the API is not Offline.
Result<Url> web_api_url(const WebOptions& options);

HttpRequest web_request(const WebOptions& options, const Url& url, const std::string& key, const std::string& query);

/// Reads an answer: `organic` (title, link, snippet or description, date), or Bing's `webPages.value` (name, url,
/// snippet, datePublished). Results without a snippet, or with one that came before, are left out. An answer with
/// neither member has found nothing; one that is not a JSON object is an error.
Result<std::vector<WebResult>> parse_web_results(std::string_view body, const std::string& where);

/// Text as part of a query in an address: letters, digits and -._~ stay, other bytes become %XX.
std::string query_encoded(std::string_view text);

}  // namespace carnot
