#include "carnot/tools/web/web.h"

#include <algorithm>
#include <thread>

#include "carnot/core/base/json.h"
#include "carnot/core/base/log.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/base/process_environment.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/tools/web/page.h"

namespace carnot {
namespace {

const std::string kWebSection = "env.web.";
constexpr std::size_t kShownBytesOfAnswer = 200;
constexpr std::chrono::milliseconds kFirstRetryPause{500};

bool may_pass_later(int status) { return status == 408 || status == 425 || status == 429 || status >= 500; }

std::string first_web_characters(std::string text, int count) {
  std::size_t at = 0;
  for (; count > 0 && at < text.size(); --count)
    at += static_cast<std::size_t>(first_character(std::string_view(text).substr(at)).length);
  text.resize(at);
  return text;
}

/// `{query}` and `{pages}` of the prompt, replaced in one pass: what a page says is not looked at again.
std::string filled(std::string_view prompt, const std::string& query, const std::string& pages) {
  std::string out;
  while (!prompt.empty()) {
    if (prompt.starts_with("{query}") || prompt.starts_with("{pages}")) {
      out += prompt.starts_with("{query}") ? query : pages;
      prompt.remove_prefix(7);
    } else {
      out += prompt.front();
      prompt.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace

std::string without_thoughts(const std::string& text) {
  constexpr std::string_view kEndOfThought = "</think>";
  const std::size_t at = text.rfind(kEndOfThought);
  return std::string(stripped(at == std::string::npos ? text : text.substr(at + kEndOfThought.size())));
}

Result<std::shared_ptr<Web>> Web::open(const WebOptions& options) {
  std::shared_ptr<Web> web(new Web(options));
  CARNOT_RETURN_IF_ERROR(web->set_up());
  return web;
}

Status Web::set_up() {
  std::vector<std::string> problems;
  const auto take = [&](auto result, auto& target, const std::string& where = "") {
    if (result)
      target = std::move(result).value();
    else
      problems.push_back(where + result.error().message);
  };
  const bool offline = options_.api == WebApi::Offline;
  if (options_.cache.empty() && (offline || options_.record))
    problems.push_back(kWebSection + "cache: names no file; expected one of results and pages, or " + kWebSection +
                       "api: serper, bing or brightdata (docs/web_search.md)");
  if (offline && options_.record) problems.push_back(kWebSection + "record: there is nothing to record offline");
  if (!options_.cache.empty()) take(WebCache::open(options_.cache, options_.record), cache_, kWebSection + "cache: ");
  if (!offline) {
    take(web_api_url(options_), api_, kWebSection + "url: ");
    auto key = key_of_variable(options_.key_variable, kWebSection + "key_variable");
    if (key && key->empty() && options_.url.empty())
      problems.push_back(kWebSection +
                         "key_variable: empty; expected the NAME of an environment variable that holds "
                         "the API's key, never the key itself");
    else
      take(std::move(key), key_);
  }
  if (options_.pages == WebPages::Summary) {
    take(ChatEndpoint::open(options_.summary, kWebSection + "summary."), summary_);
  } else if (!options_.summary.url.empty()) {
    problems.push_back(kWebSection + "summary: has no effect; expected " + kWebSection + "pages: summary");
  }
  if (options_.summary_prompt.empty()) options_.summary_prompt = default_summary_prompt();
  if (options_.summary_prompt.find("{pages}") == std::string::npos)
    problems.push_back(kWebSection + "summary_prompt: does not show the pages; expected {pages} in it");
  if (!problems.empty()) return join_errors(problems);
  return Done{};
}

std::vector<WebResult> Web::search(const std::string& query, Tool::Deadline deadline) {
  std::optional<std::vector<WebResult>> found;
  if (cache_) found = cache_->find_results(query);
  if (!found && options_.api != WebApi::Offline) {
    found = ask_api(query, deadline);
    if (cache_) keep(cache_->add(query, *found));
  }
  if (!found && options_.on_miss == WebMiss::Fail)
    throw PeerFailure(kWebSection + "cache: " + options_.cache + " has no query \"" + printable_line(query) + "\" (" +
                      kWebSection + "on_miss)");
  if (!found)
    found = options_.on_miss == WebMiss::Nearest ? cache_->nearest(query, options_.results) : std::vector<WebResult>();
  if (std::ssize(*found) > options_.results) found->resize(static_cast<std::size_t>(options_.results));
  for (WebResult& result : *found)
    result.snippet = first_web_characters(std::move(result.snippet), options_.snippet_length);
  return std::move(*found);
}

std::vector<WebResult> Web::ask_api(const std::string& query, Tool::Deadline deadline) {
  const HttpRequest request = web_request(options_, api_, key_, query);
  const std::string name = request.method + " " + api_.shown();
  std::string problem;
  for (int tries = 0; tries <= options_.retries; ++tries) {
    if (tries > 0) {
      const auto pause = kFirstRetryPause * (1 << std::min(tries - 1, 6));
      if (std::chrono::steady_clock::now() + pause >= deadline) break;
      std::this_thread::sleep_for(pause);
    }
    wait_for_turn(deadline);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    const auto answer = http_exchange(request, {.time = left});
    if (!answer) {
      problem = answer.error().message;
      continue;
    }
    if (answer->is_success()) {
      auto results = parse_web_results(answer->body, name);
      if (!results) throw PeerFailure(kWebSection + "url: " + without_api_key(results.error().message));
      return std::move(results).value();
    }
    problem = name + ": status " + std::to_string(answer->status) + ": " +
              printable_line(answer->body.substr(0, kShownBytesOfAnswer));
    if (!may_pass_later(answer->status)) break;
  }
  if (problem.empty()) problem = name + ": no answer in time";
  throw PeerFailure(kWebSection + "url: " + without_api_key(problem));
}

void Web::wait_for_turn(Tool::Deadline deadline) {
  if (options_.requests_per_second <= 0) return;
  const auto apart = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(1 / std::max(1e-6, options_.requests_per_second)));
  std::chrono::steady_clock::time_point mine;
  {
    const std::lock_guard lock(turn_);
    mine = std::max(next_turn_, std::chrono::steady_clock::now());
    if (mine >= deadline)
      throw PeerFailure(kWebSection + "requests_per_second: no turn to ask before the call's deadline");
    next_turn_ = mine + apart;
  }
  std::this_thread::sleep_until(mine);
}

WebPage Web::page(const std::string& url, Tool::Deadline deadline) {
  std::optional<WebPage> found;
  if (cache_) found = cache_->find_page(url);
  if (!found && options_.api == WebApi::Offline) {
    if (options_.on_miss == WebMiss::Fail)
      throw PeerFailure(kWebSection + "cache: " + options_.cache + " has no page " + printable_line(url) + " (" +
                        kWebSection + "on_miss)");
    return {.problem = "it is not in this copy of the web"};
  }
  if (!found) {
    const auto time =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(options_.page_timeout));
    auto text = fetch_page(url, {.time = time, .private_addresses = options_.private_addresses}, deadline);
    found = text ? WebPage{.text = first_web_characters(std::move(text).value(), options_.page_length)}
                 : WebPage{.problem = printable_line(text.error().message)};
    if (cache_) keep(cache_->add(url, *found));
  }
  found->text = first_web_characters(std::move(found->text), options_.page_length);
  return std::move(*found);
}

std::string Web::summarize(const std::string& query, const std::string& pages, Tool::Deadline deadline) {
  const Json request{
      {"model", options_.summary.model},
      {"messages", Json::array({{{"role", "user"}, {"content", filled(options_.summary_prompt, query, pages)}}})},
      {"temperature", options_.summary_temperature},
      {"top_p", options_.summary_top_p},
      {"max_tokens", options_.summary_tokens}};
  try {
    return without_thoughts(summary_->exchange(json_line(request), deadline).text);
  } catch (const ChatFailure& failure) {
    throw PeerFailure(failure.what());
  }
}

std::string Web::without_api_key(std::string text) const {
  if (key_.empty()) return text;
  for (std::size_t at = text.find(key_); at != std::string::npos; at = text.find(key_))
    text.replace(at, key_.size(), "***");
  return text;
}

void Web::keep(const Status& kept) {
  if (kept) return;
  std::call_once(warned_, [&] {
    log_warning(kWebSection + "cache: " + kept.error().message + "; the run continues without keeping such answers");
  });
}

}  // namespace carnot
