// The tools `search` and `browse` over the web, against servers of this test and files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/tools/web/page.h"
#include "carnot/tools/web/web_tools.h"
#include "testing/local_http_server.h"

namespace carnot {
namespace {

using testing::GivenAnswer;
using ::testing::HasSubstr;
using testing::LocalHttpServer;
using ::testing::Not;
using testing::ReceivedRequest;

Tool::Deadline in_time() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

class WebTools : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("carnot_web_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    ::setenv("CARNOT_TEST_SEARCH_KEY", "sk-secret", 1);
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("CARNOT_TEST_SEARCH_KEY");
  }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  static WebOptions live(const std::string& url, WebApi api = WebApi::Serper) {
    WebOptions options;
    options.api = api;
    options.url = url;
    options.key_variable = "CARNOT_TEST_SEARCH_KEY";
    options.requests_per_second = 0;
    options.retries = 1;
    options.private_addresses = true;
    return options;
  }

  static ToolSet tools(const WebOptions& web) {
    const auto opened = Web::open(web);
    EXPECT_TRUE(opened.ok()) << (opened ? "" : opened.error().message);
    return ToolSet({make_web_search(opened.value()), make_browse(opened.value())});
  }

  static ToolResult search(const ToolSet& set, const std::string& query) {
    return set.call("search", Json{{"query", query}}.dump(), in_time());
  }
  static ToolResult browse(const ToolSet& set, const std::string& url) {
    return set.call("browse", Json{{"url", url}}.dump(), in_time());
  }

  static std::string failure_of(const ToolSet& set, const std::string& query) {
    try {
      (void)search(set, query);
    } catch (const PeerFailure& failure) {
      return failure.what();
    }
    return "";
  }

  std::filesystem::path folder_{};
};

const std::string kCache =
    R"({"query": "who wrote Emma", "results": [{"title": "Emma", "url": "http://a.example/emma", "snippet": )"
    R"("Emma is a novel by Jane Austen."}, {"title": "Austen", "url": "http://a.example/austen", "snippet": )"
    R"("Jane Austen was born in Steventon."}]})"
    "\n"
    R"({"url": "http://a.example/emma", "text": "Emma. A novel of 1815. Emma is a novel by Jane Austen. The end."})"
    "\n"
    R"({"url": "http://a.example/austen", "problem": "status 404"})"
    "\n";

TEST_F(WebTools, AnswerFromTheCacheInArposWords) {
  WebOptions options;
  options.cache = file("cache.jsonl", kCache);
  const ToolSet set = tools(options);
  const ToolResult found = search(set, " \"who wrote Emma\" ");
  EXPECT_EQ(found.text, "Page 1: Emma is a novel by Jane Austen.\nPage 2: Jane Austen was born in Steventon.");
  EXPECT_EQ(found.status, "ok");
  EXPECT_EQ(browse(set, "http://a.example/emma").text,
            "Emma. A novel of 1815. Emma is a novel by Jane Austen. The end.");
  const ToolResult gone = browse(set, "http://a.example/austen");
  EXPECT_EQ(gone.status, "error");
  EXPECT_EQ(gone.text, "The page cannot be read: status 404");
  EXPECT_EQ(browse(set, "ftp://a.example").status, "bad_arguments");
  EXPECT_EQ(search(set, "\"\"").status, "bad_arguments");
}

TEST_F(WebTools, OfflineSayWhatARecipeWantsOfAQueryThatTheCacheLacks) {
  WebOptions options;
  options.cache = file("cache.jsonl", kCache);
  EXPECT_THAT(failure_of(tools(options), "where was Austen born"), HasSubstr("has no query \"where was Austen born\""));
  EXPECT_THROW((void)browse(tools(options), "http://a.example/none"), PeerFailure);
  options.on_miss = WebMiss::Empty;
  EXPECT_EQ(search(tools(options), "where was Austen born").text, "No search results found.");
  EXPECT_EQ(search(tools(options), "where was Austen born").status, "empty");
  EXPECT_EQ(browse(tools(options), "http://a.example/none").status, "error");
  options.on_miss = WebMiss::Nearest;
  options.results = 1;
  EXPECT_EQ(search(tools(options), "where was Austen born").text, "Page 1: Jane Austen was born in Steventon.");
}

TEST_F(WebTools, AskSerperBingAndBrightDataAsTheyWantIt) {
  ReceivedRequest seen;
  std::string answer;
  const LocalHttpServer server([&](const ReceivedRequest& request) -> GivenAnswer {
    seen = request;
    return {.body = answer};
  });
  answer = R"({"organic": [{"title": "T", "link": "http://x", "snippet": " one ", "date": "2024-01-02"},
      {"snippet": "one"}, {"snippet": ""}, 5, {"description": "a <b>second</b>"}]})";
  const ToolResult serper = search(tools(live(server.url("/search"))), "Größe & \"x\"");
  EXPECT_EQ(serper.text, "Page 1: one\nPage 2: a second");
  EXPECT_EQ(seen.method + " " + seen.target, "POST /search");
  EXPECT_EQ(seen.headers.at("x-api-key"), "sk-secret");
  EXPECT_EQ(Json::parse(seen.body), (Json{{"q", "Größe & x"}, {"hl", "en"}, {"gl", "us"}, {"num", 10}}));

  answer = R"({"webPages": {"value": [{"name": "T", "url": "http://x", "snippet": "bing's"}]}})";
  EXPECT_EQ(search(tools(live(server.url("/v7.0/search"), WebApi::Bing)), "a&b ü").text, "Page 1: bing's");
  EXPECT_EQ(seen.method + " " + seen.target, "GET /v7.0/search?q=a%26b%20%C3%BC&mkt=en-US&count=10");
  EXPECT_EQ(seen.headers.at("ocp-apim-subscription-key"), "sk-secret");

  answer = "{}";
  EXPECT_EQ(search(tools(live(server.url("/request"), WebApi::BrightData)), "a b").text, "No search results found.");
  EXPECT_EQ(seen.headers.at("authorization"), "Bearer sk-secret");
  EXPECT_EQ(Json::parse(seen.body).at("url"),
            "https://www.bing.com/search?q=a%20b&mkt=en-US&setLang=en&brd_json=1&cc=us");
}

TEST_F(WebTools, TryAgainAndThenFailAsInfrastructureWithoutTheKey) {
  std::atomic<int> asked = 0;
  std::atomic<int> status = 503;
  std::string body = "busy, sk-secret";
  const LocalHttpServer server([&](const ReceivedRequest&) -> GivenAnswer {
    ++asked;
    return {.status = status, .body = body};
  });
  const ToolSet set = tools(live(server.url("/search?token=hidden")));
  const std::string busy = failure_of(set, "q");
  EXPECT_THAT(busy, HasSubstr("status 503: busy, ***"));
  EXPECT_THAT(busy, Not(HasSubstr("hidden")));
  EXPECT_EQ(asked, 2);
  status = 401;
  EXPECT_THAT(failure_of(set, "q"), HasSubstr("status 401"));
  EXPECT_EQ(asked, 3) << "a key that is refused once stays so";
  status = 200;
  body = "<html>";
  EXPECT_THAT(failure_of(set, "q"), HasSubstr("env.web.url: POST "));
  EXPECT_THROW((void)search(tools(live("http://127.0.0.1:9/")), "q"), PeerFailure);
}

TEST_F(WebTools, RecordWhatTheyWereToldAndAnswerTheSameOffline) {
  std::atomic<int> asked = 0;
  const LocalHttpServer server([&](const ReceivedRequest& request) -> GivenAnswer {
    ++asked;
    if (request.target == "/page") return {.body = "<title>T</title><p>text &amp; more", .type = "text/html"};
    if (request.target == "/gone") return {.status = 404, .body = "no"};
    Json answer;
    answer["organic"][0] = {{"link", "http://x"}, {"snippet", "of " + request.body}};
    return {.body = answer.dump()};
  });
  WebOptions options = live(server.url("/search"));
  options.cache = folder_ / "recorded.jsonl";
  options.record = true;
  const std::string page = server.url("/page"), gone = server.url("/gone");
  std::string first, again;
  {
    const ToolSet set = tools(options);
    first = search(set, "one").text + search(set, "two").text + browse(set, page).text + browse(set, gone).text;
    EXPECT_EQ(asked, 4);
    again = search(set, "one").text + search(set, "two").text + browse(set, page).text + browse(set, gone).text;
    EXPECT_EQ(asked, 4) << "what is known is not asked again";
  }
  EXPECT_THAT(first, ::testing::StartsWith("Page 1: of {"));
  EXPECT_THAT(first, HasSubstr("T text & moreThe page cannot be read: status 404"));
  EXPECT_EQ(again, first);
  // A process that was killed while it wrote: its line is taken off. A whole line without its end stays.
  std::ofstream(options.cache, std::ios::app) << R"({"query": "thr)";
  const std::string four = search(tools(options), "four").text;
  std::ofstream(options.cache, std::ios::app) << R"({"query": "five", "results": []})";
  (void)search(tools(options), "six");
  WebOptions offline;
  offline.cache = options.cache;
  const ToolSet set = tools(offline);
  EXPECT_EQ(search(set, "four").text, four);
  EXPECT_EQ(search(set, "five").status, "empty");
  EXPECT_EQ(search(set, "six").status, "ok");
  EXPECT_EQ(search(set, "one").text + search(set, "two").text + browse(set, page).text + browse(set, gone).text, first);
}

TEST_F(WebTools, ShowThePartOfAPageThatIsAboutItsSnippet) {
  WebOptions options;
  options.cache = file("cache.jsonl", kCache);
  options.pages = WebPages::Excerpts;
  options.excerpt_length = 8;
  const std::string text = search(tools(options), "who wrote Emma").text;
  EXPECT_THAT(text, ::testing::StartsWith("**Web Page 1:**\n{\n  \"id\": 1,\n  \"title\": \"Emma\",\n"));
  EXPECT_THAT(text, HasSubstr(R"("context": "f 1815. Emma is a novel by Jane Austen. The end")"));
  EXPECT_THAT(text, HasSubstr(R"("context": "The page cannot be read: status 404")"));
  options.shown_length = 20;
  EXPECT_EQ(search(tools(options), "who wrote Emma").text, "**Web Page 1:**\n{\n  ...");
}

TEST_F(WebTools, LetASecondModelSummarisePagesAndFailWithIt) {
  ReceivedRequest seen;
  std::atomic<int> status = 200;
  const LocalHttpServer model([&](const ReceivedRequest& request) -> GivenAnswer {
    seen = request;
    return {.status = status,
            .body = R"({"choices": [{"message": {"content": "<think>hm</think>\n Austen wrote it. "}}]})"};
  });
  WebOptions options;
  options.cache = file("cache.jsonl", kCache);
  options.pages = WebPages::Summary;
  options.summary.url = model.url("/v1");
  options.summary.model = "small";
  options.summary.key_variable = "CARNOT_TEST_SEARCH_KEY";
  options.summary.retries = 0;
  options.summary_prompt = "{query}? {pages}";
  const ToolSet set = tools(options);
  EXPECT_EQ(search(set, "who wrote Emma").text, "Austen wrote it.");
  EXPECT_EQ(seen.target, "/v1/chat/completions");
  EXPECT_EQ(seen.headers.at("authorization"), "Bearer sk-secret");
  const Json body = Json::parse(seen.body);
  EXPECT_EQ(body.at("model"), "small");
  EXPECT_EQ(body.at("max_tokens"), 4096);
  EXPECT_THAT(body.at("messages").at(0).at("content").get<std::string>(),
              ::testing::StartsWith("who wrote Emma? **Web Page 1:**\n{"));
  EXPECT_EQ(browse(set, "http://a.example/emma").text, "Austen wrote it.");
  status = 500;
  EXPECT_THAT(failure_of(set, "who wrote Emma"), HasSubstr("env.web.summary.url: "));
}

TEST_F(WebTools, SayBeforeARunWhatIsMissing) {
  const auto error = [](const WebOptions& options) {
    const auto opened = Web::open(options);
    return opened ? std::string() : opened.error().message;
  };
  WebOptions options;
  EXPECT_THAT(error(options), HasSubstr("env.web.cache: names no file"));
  options.cache = folder_ / "none.jsonl";
  EXPECT_THAT(error(options), HasSubstr("env.web.cache: "));
  options.cache = file("bad.jsonl", "{\"query\": \"a\"}\n{\"url\": 5}\n{\"url\": \"u\"}\n[]\n");
  EXPECT_THAT(error(options), HasSubstr("bad.jsonl:1: results: expected a list"));
  EXPECT_THAT(error(options), HasSubstr("bad.jsonl:2: url: expected a string, found 5"));
  EXPECT_THAT(error(options), HasSubstr("bad.jsonl:3: expected query and results, or url and either text or problem"));
  EXPECT_THAT(error(options), HasSubstr("bad.jsonl:4"));
  options = {};
  options.api = WebApi::Serper;
  EXPECT_THAT(error(options), HasSubstr("env.web.key_variable: empty; expected the NAME"));
  options.key_variable = "CARNOT_TEST_SEARCH_KEY";
  EXPECT_EQ(error(options), "");
  options.pages = WebPages::Summary;
  EXPECT_THAT(error(options), HasSubstr("env.web.summary.url: empty"));
  options.summary_prompt = "no pages";
  EXPECT_THAT(error(options), HasSubstr("expected {pages} in it"));
}

TEST(PageText, IsWhatAReaderSees) {
  EXPECT_EQ(html_text("<html><head><title> A title </title><style>p {}</style><script>x = '<p>no'</script></head>"
                      "<body><h1>One</h1>two<!-- not this -->  <p>three <b>four</b>\n five &lt;6&gt;<br>seven"
                      "<template><p>not this</template></body>"),
            "A title One two three four five <6> seven");
  EXPECT_EQ(html_text(""), "");
  EXPECT_EQ(html_text("no tags \xff at all"), "no tags \uFFFD at all");
  const std::string numbered = html_text("a&#xDDDDDDDDDDDDDDDDD;b");  // no such character, and more than a number holds
  EXPECT_EQ(valid_prefix(numbered), numbered.size());
  EXPECT_TRUE(numbered.starts_with('a') && numbered.ends_with('b'));
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "<div>";
  EXPECT_EQ(html_text("before" + deep + "after"), "before");
  std::string flat;
  for (int i = 0; i < 5000; ++i) flat += "<li>x<br><p>";
  EXPECT_EQ(html_text(flat + "end").size(), 2 * 5000u + 3);
}

TEST(PageText, IsReadInItsCharacterSet) {
  const auto text = [](const std::string& type, const std::string& body) {
    const auto read = page_text({.status = 200, .headers = {{"Content-Type", type}}, .body = body});
    return read ? *read : read.error().message;
  };
  EXPECT_EQ(text("text/html; charset=ISO-8859-1",
                 "<p>Gr\xf6\xdf"
                 "e"),
            "Größe");
  EXPECT_EQ(text("text/html", "<meta charset=\"windows-1252\"><p>\x80 5"), "€ 5");
  EXPECT_EQ(text("text/html; charset=no-such-set", "<p>a\xff"), "a\uFFFD");
  EXPECT_EQ(text("text/plain; charset=utf-8", " <p>ä "), "<p>ä");
  EXPECT_EQ(text("application/pdf", "%PDF"), "a page of type application/pdf, of which no text is read");
}

TEST(PageFetch, FollowsRedirectsButNotToPrivateNetworks) {
  std::string location;
  const LocalHttpServer server([&](const ReceivedRequest& request) -> GivenAnswer {
    if (request.target == "/a/from") return {.status = 302, .headers = {{"Location", location}}};
    return {.body = "at " + request.target, .type = "text/plain"};
  });
  const PageFetch open{.private_addresses = true};
  EXPECT_FALSE(fetch_page(server.url("/a/from"), open, in_time()).ok()) << "a redirect to nowhere";
  location = "to?y=2";
  EXPECT_EQ(*fetch_page(server.url("/a/from"), open, in_time()), "at /a/to?y=2");
  location = "/to";
  EXPECT_EQ(*fetch_page(server.url("/a/from"), open, in_time()), "at /to");
  location = server.url("/there");
  EXPECT_EQ(*fetch_page(server.url("/a/from"), open, in_time()), "at /there");
  location = "/a/from";
  EXPECT_EQ(fetch_page(server.url("/a/from"), open, in_time()).error().message, "more than five redirects");
  EXPECT_EQ(fetch_page(server.url("/there"), {}, in_time()).error().message,
            "the address is not one of the public internet");
}

TEST(PageFetch, KnowsPublicAddresses) {
  for (const char* address : {"8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:4860:4860::8888", "::ffff:8.8.8.8"})
    EXPECT_TRUE(is_public_address(address)) << address;
  for (const char* address : {"127.0.0.1", "10.1.2.3", "172.31.255.255", "192.168.1.1", "169.254.169.254", "0.0.0.0",
                              "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "fe80::1", "fd00::1",
                              "::", "::ffff:127.0.0.1", "2002:7f00:1::", "no address"})
    EXPECT_FALSE(is_public_address(address)) << address;
}

}  // namespace
}  // namespace carnot
