// Answers of search APIs, and lines of a cache: read or refused; what was read can be written and read again.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/tools/web/cache.h"
#include "carnot/tools/web/search_api.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(web_answers) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  carnot::WebRecords records;
  if (data[0] % 2 == 0) {
    const auto results = carnot::parse_web_results(text, "answer");
    if (!results) return 0;
    records.results["query"] = *results;
  } else {
    const auto read = carnot::parse_web_records(text, "cache");
    if (!read) return 0;
    records = *read;
  }
  std::string lines;
  for (const auto& [query, results] : records.results) lines += carnot::web_record(query, results);
  for (const auto& [url, page] : records.pages) lines += carnot::web_record(url, page);
  const auto again = carnot::parse_web_records(lines, "again");
  CARNOT_CHECK_EQ(again->results.size(), records.results.size());
  CARNOT_CHECK(again->results == records.results, "results are kept");
  CARNOT_CHECK(again->pages == records.pages, "pages are kept");
  return 0;
}
