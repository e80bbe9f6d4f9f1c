#include "carnot/tools/web/search_api.h"

#include <algorithm>
#include <set>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

std::string web_text(const Json& row, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = row.find(name);
    if (found == row.end() || !found->is_string()) continue;
    if (std::string text(stripped(found->get_ref<const std::string&>())); !text.empty()) return text;
  }
  return "";
}

std::string without_all(std::string text, std::string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
  return text;
}

const Json* list_of_results(const Json& answer) {
  if (const auto organic = answer.find("organic"); organic != answer.end() && organic->is_array()) return &*organic;
  const auto pages = answer.find("webPages");
  if (pages == answer.end() || !pages->is_object()) return nullptr;
  const auto value = pages->find("value");
  return value != pages->end() && value->is_array() ? &*value : nullptr;
}

std::string with_query(std::string query, const std::string& name, const std::string& value) {
  query += (query.empty() ? "" : "&") + name + "=" + query_encoded(value);
  return query;
}

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return text;
}

std::string market(const WebOptions& options) { return options.language + "-" + upper_case(options.region); }

}  // namespace

std::string web_query(std::string_view text) { return std::string(stripped(without_all(std::string(text), "\""))); }

Result<Url> web_api_url(const WebOptions& options) {
  CARNOT_CHECK(options.api != WebApi::Offline, "an API is asked");
  if (!options.url.empty()) return parse_url(options.url);
  switch (options.api) {
    case WebApi::Bing: return parse_url("https://api.bing.microsoft.com/v7.0/search");
    case WebApi::BrightData: return parse_url("https://api.brightdata.com/request");
    default: return parse_url("https://google.serper.dev/search");
  }
}

HttpRequest web_request(const WebOptions& options, const Url& url, const std::string& key, const std::string& query) {
  HttpRequest request{.method = "POST", .url = url, .headers = {{"Accept", "application/json"}}};
  const auto add_key = [&](const std::string& name, const std::string& before = "") {
    if (!key.empty()) request.headers.push_back({name, before + key});
  };
  if (options.api == WebApi::Bing) {
    request.method = "GET";
    request.url.query = with_query(request.url.query, "q", query);
    request.url.query = with_query(request.url.query, "mkt", market(options));
    request.url.query = with_query(request.url.query, "count", std::to_string(options.results));
    add_key("Ocp-Apim-Subscription-Key");
    return request;
  }
  request.headers.push_back({"Content-Type", "application/json"});
  if (options.api == WebApi::BrightData) {
    std::string asked = with_query("", "q", query);
    asked = with_query(asked, "mkt", market(options));
    asked = with_query(asked, "setLang", options.language);
    request.body = json_line(
        Json{{"zone", options.zone},
             {"url", "https://www.bing.com/search?" + asked + "&brd_json=1&cc=" + query_encoded(options.region)},
             {"format", "raw"}});
    add_key("Authorization", "Bearer ");
    return request;
  }
  request.body =
      json_line(Json{{"q", query}, {"hl", options.language}, {"gl", options.region}, {"num", options.results}});
  add_key("X-API-KEY");
  return request;
}

Result<std::vector<WebResult>> parse_web_results(std::string_view body, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto answer, parse_json_object(body, where));
  std::vector<WebResult> results;
  const Json* list = list_of_results(answer);
  if (list == nullptr) return results;
  std::set<std::string> seen;
  for (const Json& row : *list) {
    if (!row.is_object()) continue;
    WebResult result{.title = web_text(row, {"title", "name"}),
                     .url = web_text(row, {"link", "url"}),
                     .snippet = web_text(row, {"description", "snippet"}),
                     .date = web_text(row, {"date", "datePublished"})};
    result.snippet = without_all(without_all(std::move(result.snippet), "<b>"), "</b>");
    if (!result.snippet.empty() && seen.insert(result.snippet).second) results.push_back(std::move(result));
  }
  return results;
}

std::string query_encoded(std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool stays = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (stays) {
      out += c;
    } else {
      out += '%';
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  return out;
}

}  // namespace carnot
