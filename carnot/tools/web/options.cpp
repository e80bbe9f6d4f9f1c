#include "carnot/tools/web/options.h"

#include "carnot/core/base/limits.h"

namespace carnot {

const std::string& default_summary_prompt() {
  static const std::string prompt =
      "Below are web pages that were found for a query. Write down what they say that helps to answer the query: "
      "facts, "
      "names, numbers and dates, each with the page that it is from. Leave out everything else. If the pages do not "
      "help, say \"No helpful information found.\"\n\nQuery:\n{query}\n\nWeb pages:\n{pages}";
  return prompt;
}

void WebOptions::fields(FieldVisitor& visit) {
  const Limits positive{.low = 0, .high = 1e6, .open_low = true};
  const Limits characters = between(1, 10'000'000);
  enum_field(visit, "api", api, {"offline", "serper", "bing", "brightdata"},
             "who answers a query; offline: the file `cache` alone");
  visit.field("url", url, "address of the API; empty: the service's own");
  visit.field("key_variable", key_variable, "name of the environment variable that holds the API's key");
  visit.field("zone", zone, "brightdata: the zone of the account");
  visit.field("language", language, "of results, as two letters");
  visit.field("region", region, "of results: a country, as two letters");
  visit.field("retries", retries, "requests to the API after one that failed", between(0, 100));
  visit.field("requests_per_second", requests_per_second, "to the API; 0: as many as there are", at_least(0));
  visit.field("cache", cache, "file of results and pages, JSON lines (docs/web_search.md)");
  visit.field("record", record, "add to the cache what the API and the web answered");
  enum_field(visit, "on_miss", on_miss, {"fail", "empty", "nearest"},
             "offline, for a query that the cache lacks: a failure of the infrastructure, no results, or the cached "
             "results that fit it best");
  visit.field("results", results, "results of a search", between(1, 100));
  visit.field("snippet_length", snippet_length, "characters of a snippet", characters);
  enum_field(
      visit, "pages", pages, {"snippets", "excerpts", "summary"},
      "what a search shows: snippets, parts of the pages around them, or what a second model writes about those");
  visit.field("excerpt_length", excerpt_length, "characters of a page before and behind the sentence of the snippet",
              characters);
  visit.field("page_length", page_length, "characters of a page's text that are kept", characters);
  visit.field("shown_length", shown_length, "characters of pages that a search or the second model is shown",
              characters);
  visit.field("page_timeout", page_timeout, "seconds for one page", positive);
  visit.field("private_addresses", private_addresses,
              "whether pages of this machine and of private networks may be read");
  section(visit, "summary", summary, "the second model, which summarises pages");
  visit.field("summary_tokens", summary_tokens, "tokens of a summary", between(1, kMaxResponseTokens));
  visit.field("summary_temperature", summary_temperature, "of the second model", between(0, 10));
  visit.field("summary_top_p", summary_top_p, "of the second model", between(0, 1));
  visit.field("summary_prompt", summary_prompt, "what it is asked; {query}, {pages}; empty: Carnot's own");
}

}  // namespace carnot
