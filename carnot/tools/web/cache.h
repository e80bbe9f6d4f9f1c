// tools/web/cache.h -- what searches found and what pages said, in a file: the web of runs without one.
//
//   {"query": "who wrote Emma", "results": [{"title": "...", "url": "...", "snippet": "...", "date": "..."}]}
//   {"url": "https://example.org/emma", "text": "..."}
//   {"url": "https://example.org/gone", "problem": "status 404"}
//
// JSON lines, in any order; of two lines for one query or address the later holds. A file that is recorded grows by
// whole lines, each written at once under a lock, so that processes may share it; a last line that a killed process
// left unfinished is passed over with a warning, and taken off before the next line is written.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/retrieval/bm25/bm25.h"
#include "carnot/tools/web/search_api.h"

namespace carnot {

/// A page's text, or why it has none.
struct WebPage {
  std::string text{};
  std::string problem{};

  bool operator==(const WebPage&) const = default;
};

struct WebRecords {
  std::map<std::string, std::vector<WebResult>, std::less<>> results{};  ///< by query
  std::map<std::string, WebPage, std::less<>> pages{};                   ///< by address
};

/// Reads the lines of a cache. The error names line, member and what was expected, for all bad lines at once.
Result<WebRecords> parse_web_records(std::string_view text, const std::string& name);

/// A line for each, with its line break.
std::string web_record(const std::string& query, const std::vector<WebResult>& results);
std::string web_record(const std::string& url, const WebPage& page);

class WebCache {
 public:
  /// Reads the file, plain or .xz. With `record` it may be absent, and is made.
  static Result<std::unique_ptr<WebCache>> open(const std::filesystem::path& file, bool record);

  std::optional<std::vector<WebResult>> find_results(std::string_view query) const;
  std::optional<WebPage> find_page(std::string_view url) const;

  /// The `count` results of the file that fit the query best, by BM25 over title and snippet. Of what was recorded
  /// since the file was opened, nothing.
  std::vector<WebResult> nearest(std::string_view query, int count) const;

  /// Keeps and, where the file is recorded, writes. The error says why it could not be written.
  Status add(const std::string& query, const std::vector<WebResult>& results);
  Status add(const std::string& url, const WebPage& page);

 private:
  WebCache(std::filesystem::path file, bool record, WebRecords records);
  Status append(const std::string& line);

  std::filesystem::path file_;
  bool record_ = false;
  std::vector<WebResult> all_{};  ///< each address once
  Bm25Index index_{};
  mutable std::mutex mutex_{};
  WebRecords records_;
};

}  // namespace carnot
