#include "carnot/tools/web/cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <set>

#include "carnot/core/base/descriptor.h"
#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

/// An optional member, which has to be a string.
Status take_text(const Json& row, const char* name, const std::string& where, std::string& text) {
  const auto found = row.find(name);
  if (found == row.end()) return Done{};
  if (!found->is_string()) return Error{where + ": " + name + ": expected a string, found " + shown(*found)};
  text = found->get<std::string>();
  return Done{};
}

Result<WebResult> read_result(const Json& row, const std::string& where) {
  if (!row.is_object()) return Error{where + ": expected an object, found " + shown(row)};
  WebResult result;
  for (const auto& [name, text] : {std::pair{"title", &result.title}, std::pair{"url", &result.url},
                                   std::pair{"snippet", &result.snippet}, std::pair{"date", &result.date}})
    CARNOT_RETURN_IF_ERROR(take_text(row, name, where, *text));
  if (result.snippet.empty()) return Error{where + ": snippet: expected a non-empty string"};
  return result;
}

Status read_results(const Json& row, const std::string& where, const std::string& query, WebRecords& records) {
  const auto list = row.find("results");
  if (list == row.end() || !list->is_array()) return Error{where + ": results: expected a list"};
  std::vector<WebResult> results;
  for (std::size_t i = 0; i < list->size(); ++i) {
    CARNOT_ASSIGN_OR_RETURN(auto result, read_result((*list)[i], where + ": results[" + std::to_string(i) + "]"));
    results.push_back(std::move(result));
  }
  records.results[query] = std::move(results);
  return Done{};
}

Status read_record(std::string_view line, const std::string& where, WebRecords& records) {
  CARNOT_ASSIGN_OR_RETURN(const auto row, parse_json_object(line, where));
  std::string query, url;
  WebPage page;
  for (const auto& [name, text] : {std::pair{"query", &query}, std::pair{"url", &url}, std::pair{"text", &page.text},
                                   std::pair{"problem", &page.problem}})
    CARNOT_RETURN_IF_ERROR(take_text(row, name, where, *text));
  if (row.contains("query")) return read_results(row, where, web_query(query), records);
  if (!url.empty() && row.contains("text") != row.contains("problem")) {
    records.pages[url] = std::move(page);
    return Done{};
  }
  return Error{where + ": expected query and results, or url and either text or problem"};
}

/// What a new line of a locked file has to begin with: a line break where the last line has none. A last line that was
/// not finished is taken off.
Result<std::string> begin_line(int file, const std::filesystem::path& path) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file, &last, 1, size - 1) != 1) return system_error(path, "cannot be read");
  if (last == '\n') return std::string();
  CARNOT_ASSIGN_OR_RETURN(const auto text, read_file(path));
  const std::size_t whole = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  WebRecords ignored;
  if (read_record(std::string_view(text).substr(whole), path.string(), ignored)) return std::string("\n");
  if (::ftruncate(file, static_cast<off_t>(whole)) != 0) return system_error(path, "cannot be cut");
  return std::string();
}

OrderedJson json_of(const WebResult& result) {
  OrderedJson json{{"title", result.title}, {"url", result.url}, {"snippet", result.snippet}};
  if (!result.date.empty()) json["date"] = result.date;
  return json;
}

}  // namespace

Result<WebRecords> parse_web_records(std::string_view text, const std::string& name) {
  WebRecords records;
  std::vector<std::string> problems;
  const auto lines = split_lines(text);
  if (lines.size() > kMaxLines) return Error{name + ": more than " + std::to_string(kMaxLines) + " lines"};
  for (std::size_t i = 0; i < lines.size() && problems.size() < kMaxProblems; ++i) {
    const std::string_view line = trim(lines[i]);
    if (line.empty()) continue;
    const Status read = read_record(line, name + ":" + std::to_string(i + 1), records);
    if (read) continue;
    if (i + 1 == lines.size() && !text.ends_with('\n'))
      log_warning(read.error().message + "; the line was not finished and is passed over");
    else
      problems.push_back(read.error().message);
  }
  if (!problems.empty()) return join_errors(problems);
  return records;
}

std::string web_record(const std::string& query, const std::vector<WebResult>& results) {
  OrderedJson list = OrderedJson::array();
  for (const WebResult& result : results) list.push_back(json_of(result));
  return json_line(OrderedJson{{"query", query}, {"results", list}}) + "\n";
}

std::string web_record(const std::string& url, const WebPage& page) {
  const bool found = page.problem.empty();
  return json_line(OrderedJson{{"url", url}, {found ? "text" : "problem", found ? page.text : page.problem}}) + "\n";
}

Result<std::unique_ptr<WebCache>> WebCache::open(const std::filesystem::path& file, bool record) {
  std::error_code ignored;
  if (record && file.extension() == ".xz")
    return Error{file.string() + ": a compressed file cannot be recorded into; expected another name"};
  WebRecords records;
  if (!record || std::filesystem::exists(file, ignored)) {
    CARNOT_ASSIGN_OR_RETURN(const auto text, read_maybe_compressed(file));
    CARNOT_ASSIGN_OR_RETURN(records, parse_web_records(text, file.string()));
  }
  std::unique_ptr<WebCache> cache(new WebCache(file, record, std::move(records)));
  if (record) CARNOT_RETURN_IF_ERROR(cache->append(""));
  return cache;
}

WebCache::WebCache(std::filesystem::path file, bool record, WebRecords records)
    : file_(std::move(file)), record_(record), records_(std::move(records)) {
  std::set<std::pair<std::string, std::string>> seen;
  std::vector<std::string> texts;
  for (const auto& [query, results] : records_.results)
    for (const WebResult& result : results) {
      if (!seen.emplace(result.url, result.snippet).second) continue;
      all_.push_back(result);
      texts.push_back(result.title + "\n" + result.snippet);
    }
  index_ = Bm25Index(texts, {});
}

std::optional<std::vector<WebResult>> WebCache::find_results(std::string_view query) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.results.find(query);
  return found == records_.results.end() ? std::nullopt : std::optional(found->second);
}

std::optional<WebPage> WebCache::find_page(std::string_view url) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.pages.find(url);
  return found == records_.pages.end() ? std::nullopt : std::optional(found->second);
}

std::vector<WebResult> WebCache::nearest(std::string_view query, int count) const {
  std::vector<WebResult> results;
  for (const SearchHit& hit : index_.search(query, count))
    results.push_back(all_[static_cast<std::size_t>(hit.document)]);
  return results;
}

Status WebCache::add(const std::string& query, const std::vector<WebResult>& results) {
  const std::lock_guard lock(mutex_);
  records_.results[query] = results;
  return append(web_record(query, results));
}

Status WebCache::add(const std::string& url, const WebPage& page) {
  const std::lock_guard lock(mutex_);
  records_.pages[url] = page;
  return append(web_record(url, page));
}

Status WebCache::append(const std::string& line) {
  if (!record_) return Done{};
  const Descriptor file(::open(file_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666));
  if (file.get() < 0) return system_error(file_, "cannot be written");
  if (::flock(file.get(), LOCK_EX) != 0) return system_error(file_, "cannot be locked");
  CARNOT_ASSIGN_OR_RETURN(const auto begin, begin_line(file.get(), file_));
  const std::string bytes = line.empty() ? "" : begin + line;
  for (std::string_view left = bytes; !left.empty();) {
    const ssize_t written = ::write(file.get(), left.data(), left.size());
    if (written <= 0) return system_error(file_, "cannot be written");
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  return Done{};
}

}  // namespace carnot
