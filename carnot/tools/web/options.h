// tools/web/options.h -- the settings of the tools that search the web and read its pages.
#pragma once

#include <cstdint>
#include <string>

#include "carnot/core/base/fields.h"
#include "carnot/serving/openai/chat_endpoint.h"

namespace carnot {

/// Who answers a query.
enum class WebApi : std::uint8_t {
  Offline,     ///< the cache file alone: no request leaves this machine
  Serper,      ///< POST {"q", "gl", "hl", "num"}, key in X-API-KEY; results under `organic`
  Bing,        ///< GET ?q=...&mkt=en-US&count=10, key in Ocp-Apim-Subscription-Key; results under `webPages.value`
  BrightData,  ///< POST {"zone", "url", "format": "raw"}, key as bearer; results under `organic` (ARPO's training)
};

/// What a search shows of the pages that it found.
enum class WebPages : std::uint8_t {
  Snippets,  ///< the snippets alone (training of ARPO and AEPO)
  Excerpts,  ///< snippets, and of each page the part around its snippet
  Summary,   ///< what a second model writes about those excerpts (their evaluation with a browser)
};

/// What an offline search answers where the cache has no such query.
enum class WebMiss : std::uint8_t {
  Fail,     ///< the trajectory is an infrastructure failure
  Empty,    ///< nothing was found
  Nearest,  ///< those of all results in the cache that fit the query best, by BM25 over title and snippet
};

struct WebOptions {
  WebApi api = WebApi::Offline;
  std::string url{};           ///< of the API; empty: the service's own
  std::string key_variable{};  ///< the environment variable that holds the API's key
  std::string zone = "web_unlocker1";
  std::string language = "en";
  std::string region = "us";
  int retries = 2;
  double requests_per_second = 2;
  std::string cache{};
  bool record = false;
  WebMiss on_miss = WebMiss::Fail;
  int results = 10;
  int snippet_length = 1000;
  WebPages pages = WebPages::Snippets;
  int excerpt_length = 3000;
  int page_length = 20'000;
  int shown_length = 20'000;
  double page_timeout = 20;
  bool private_addresses = false;
  ChatEndpointOptions summary{};
  int summary_tokens = 4096;
  double summary_temperature = 0.6;
  double summary_top_p = 0.95;
  std::string summary_prompt{};  ///< empty: default_summary_prompt()

  void fields(FieldVisitor& visit);
};

/// Asks for what helps to answer {query} in {pages}.
const std::string& default_summary_prompt();

}  // namespace carnot
