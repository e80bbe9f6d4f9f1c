#include "carnot/tools/web/web_tools.h"

#include <exception>
#include <thread>

#include "carnot/core/base/json.h"
#include "carnot/core/base/utf8.h"
#include "carnot/http/url.h"
#include "carnot/tools/toolbox/toolbox.h"
#include "carnot/tools/web/page.h"

namespace carnot {
namespace {

std::string snippet_lines(const std::vector<WebResult>& results) {
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i)
    text += (i > 0 ? "\nPage " : "Page ") + std::to_string(i + 1) + ": " + results[i].snippet;
  return text;
}

/// The page of each result, all at once. Rethrows the first failure.
std::vector<WebPage> pages_of(Web& web, const std::vector<WebResult>& results, Tool::Deadline deadline) {
  std::vector<WebPage> pages(results.size());
  std::vector<std::exception_ptr> failures(results.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < results.size(); ++i)
      threads.emplace_back([&, i] {
        try {
          pages[i] = web.page(results[i].url, deadline);
        } catch (...) {
          failures[i] = std::current_exception();
        }
      });
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return pages;
}

std::string documents_of(const std::vector<WebResult>& results, const std::vector<WebPage>& pages,
                         const WebOptions& options) {
  std::string text;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string context = pages[i].problem.empty()
                                    ? excerpt_around(pages[i].text, results[i].snippet, options.excerpt_length)
                                    : "The page cannot be read: " + pages[i].problem;
    const OrderedJson document{{"id", i + 1},
                               {"title", results[i].title},
                               {"url", results[i].url},
                               {"date", results[i].date},
                               {"snippet", results[i].snippet},
                               {"context", context}};
    text += "**Web Page " + std::to_string(i + 1) + ":**\n" +
            document.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
  }
  return text;
}

std::string shortened(std::string text, int length) {
  std::size_t at = 0;
  for (; length > 0 && at < text.size(); --length)
    at += static_cast<std::size_t>(first_character(std::string_view(text).substr(at)).length);
  if (at == text.size()) return text;
  text.resize(at);
  return text + "...";
}

class WebSearchTool final : public Tool {
 public:
  explicit WebSearchTool(std::shared_ptr<Web> web) : web_(std::move(web)) {}

  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline deadline) override {
    const auto given = parse_json_object(arguments, "arguments").value();
    const std::string query = web_query(given.at("query").get<std::string>());
    if (query.empty()) return {.text = "Error: the query is empty.", .status = "bad_arguments"};
    const WebOptions& options = web_->options();
    const auto results = web_->search(query, deadline);
    if (results.empty()) return {.text = "No search results found.", .status = "empty"};
    if (options.pages == WebPages::Snippets) return {.text = snippet_lines(results)};
    std::string documents =
        shortened(documents_of(results, pages_of(*web_, results, deadline), options), options.shown_length);
    if (options.pages == WebPages::Excerpts) return {.text = std::move(documents)};
    return {.text = web_->summarize(query, documents, deadline)};
  }

 private:
  ToolDescription description_{
      .name = "search",
      .description = "Searches the web and returns what the pages that fit best say.",
      .parameters =
          R"({"type": "object", "properties": {"query": {"type": "string", "description": "what to search for"}}, )"
          R"("required": ["query"]})"};
  std::shared_ptr<Web> web_;
};

class BrowseTool final : public Tool {
 public:
  explicit BrowseTool(std::shared_ptr<Web> web) : web_(std::move(web)) {}

  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline deadline) override {
    const auto given = parse_json_object(arguments, "arguments").value();
    const std::string url(stripped(given.at("url").get<std::string>()));
    if (const auto parsed = parse_url(url); !parsed)
      return {.text = "Error: " + parsed.error().message, .status = "bad_arguments"};
    const WebPage page = web_->page(url, deadline);
    if (!page.problem.empty()) return {.text = "The page cannot be read: " + page.problem, .status = "error"};
    if (page.text.empty()) return {.text = "The page has no text.", .status = "empty"};
    const WebOptions& options = web_->options();
    std::string text = shortened(page.text, options.shown_length);
    if (options.pages != WebPages::Summary) return {.text = std::move(text)};
    return {.text = web_->summarize(url, text, deadline)};
  }

 private:
  ToolDescription description_{
      .name = "browse",
      .description = "Returns the text of the web page at an address.",
      .parameters =
          R"({"type": "object", "properties": {"url": {"type": "string", "description": "http:// or https://"}}, )"
          R"("required": ["url"]})"};
  std::shared_ptr<Web> web_;
};

class WebKind final : public ToolKind {
 public:
  void fields(FieldVisitor& visit) override {
    section(visit, "web", options_, "what the tools `search web` and `browse` ask (docs/web_search.md)");
  }

  /// Both tools share a cache.
  void open(std::span<const ToolEntry> entries, const ToolTimes&, OpenedTools& opened) const override {
    const auto web = Web::open(options_);
    if (!web) return opened.problems.push_back(web.error().message);
    for (const ToolEntry& entry : entries)
      opened.add(entry, entry.text == "browse" ? make_browse(*web) : make_web_search(*web));
  }

 private:
  WebOptions options_;
};

}  // namespace

std::shared_ptr<Tool> make_web_search(std::shared_ptr<Web> web) {
  return std::make_shared<WebSearchTool>(std::move(web));
}

std::shared_ptr<Tool> make_browse(std::shared_ptr<Web> web) { return std::make_shared<BrowseTool>(std::move(web)); }

std::unique_ptr<ToolKind> make_web_kind() { return std::make_unique<WebKind>(); }

}  // namespace carnot
