#include <condition_variable>
#include <limits>
#include <mutex>
#include <stop_token>
#include <thread>

#include "carnot/core/base/strings.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/http/event_stream.h"
#include "carnot/tools/mcp/messages.h"
#include "carnot/tools/mcp/transport.h"

namespace carnot {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kFarewell = std::chrono::milliseconds(2000);
constexpr auto kWholeRun = std::chrono::hours(24 * 20);  // in milliseconds it has to fit an int
constexpr std::size_t kLongestMessage = std::size_t{16} << 20;

std::chrono::milliseconds until(McpTransport::Deadline deadline) {
  return std::max(std::chrono::milliseconds(1),
                  std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()));
}

bool is_of_type(const HttpAnswer& answer, std::string_view type) {
  const std::string* found = find_header(answer.headers, "Content-Type");
  return found != nullptr && lower_case(*found).starts_with(type);
}

/// The address that an endpoint event names: a path of the same server, or the whole address of one there.
Result<Url> endpoint_of(const Url& server, const std::string& text) {
  const bool is_path = text.starts_with("/") && !text.starts_with("//");
  const std::string host = server.host.find(':') == std::string::npos ? server.host : "[" + server.host + "]";
  CARNOT_ASSIGN_OR_RETURN(const auto url, parse_url(is_path ? (server.secure ? "https://" : "http://") + host + ":" +
                                                                  std::to_string(server.port) + text
                                                            : text));
  if (url.host == server.host && url.port == server.port && url.secure == server.secure) return url;
  return Error{"the endpoint " + url.shown() + " is on another server"};
}

/// An MCP server behind an address, by either of the protocol's two ways over HTTP. Since revision 2025-03-26 one
/// address takes every message and answers it, with JSON or with a stream of events. Before (2024-11-05), a stream of
/// events is opened first; it names the address to post to and brings all answers. Which way a server speaks shows in
/// its answer to the first message.
class HttpTransport final : public McpTransport {
 public:
  HttpTransport(const std::string& name, Url url, HttpHeaders headers)
      : name_(name), url_(std::move(url)), headers_(std::move(headers)) {}

  void open(McpHandlers handlers, Deadline) override { handlers_ = std::move(handlers); }

  void send(const std::string& message, std::string_view method, std::string_view tool, Deadline deadline) override {
    Posted posted = post(message, method, tool, deadline);
    const bool may_be_older = posted.status == 400 || posted.status == 404 || posted.status == 405;
    if (method == "initialize" && may_be_older && !posted.was_answered) {
      listen(deadline);
      posted = post(message, method, tool, deadline);
    }
    if (posted.was_answered) return;
    if (posted.status < 200 || posted.status >= 300) throw PeerFailure(refusal(posted));
    const bool comes_elsewhere = is_older() || method.empty();
    if (!comes_elsewhere) throw PeerFailure(name_ + " did not answer " + std::string(method));
  }

  void set_version(const std::string& version) override {
    const std::lock_guard lock(mutex_);
    version_ = version;
  }

  void close() override {
    if (!stop_.stop_requested()) end_session();
    stop_.request_stop();
    if (listener_.joinable()) listener_.join();
  }
  void kill() override { stop_.request_stop(); }
  std::string label() const override { return name_; }

 private:
  struct Posted {
    int status = 0;
    bool was_answered = false;  ///< with the answer to the request
    std::string location{};     ///< of a redirect
  };

  bool is_older() const {
    const std::lock_guard lock(mutex_);
    return endpoint_.has_value();
  }

  HttpRequest request(const std::string& http_method) const {
    const std::lock_guard lock(mutex_);
    HttpRequest made{.method = http_method, .url = endpoint_.value_or(url_), .headers = headers_};
    made.headers.push_back(
        {"Accept", http_method == "GET" ? "text/event-stream" : "application/json, text/event-stream"});
    if (!session_.empty()) made.headers.push_back({"Mcp-Session-Id", session_});
    if (!version_.empty() && !endpoint_) made.headers.push_back({"MCP-Protocol-Version", version_});
    return made;
  }

  Posted post(const std::string& message, std::string_view method, std::string_view tool, Deadline deadline) {
    HttpRequest posted = request("POST");
    posted.headers.push_back({"Content-Type", "application/json"});
    if (const std::lock_guard lock(mutex_); version_ == kMcpStatelessVersion && !method.empty()) {
      posted.headers.push_back({"Mcp-Method", std::string(method)});
      if (!tool.empty()) posted.headers.push_back({"Mcp-Name", std::string(tool)});
    }
    posted.body = message;
    EventStream events(kLongestMessage);
    std::string body, problem;
    bool was_answered = false;
    const auto answer =
        http_stream(posted, {.time = until(deadline), .answer_bytes = kLongestMessage, .cancel = stop_.get_token()},
                    [&](const HttpAnswer& so_far, std::string_view piece) {
                      if (!is_of_type(so_far, "text/event-stream")) {
                        body += piece;
                        return true;
                      }
                      const auto more = events.add(piece, [&](const ServerSentEvent& event) {
                        was_answered = handle(event) || was_answered;
                        return !was_answered;
                      });
                      if (!more) problem = more.error().message;
                      return more && *more;
                    });
    if (!answer) throw PeerFailure(name_ + ": " + answer.error().message);
    if (!problem.empty()) throw PeerFailure(name_ + ": " + problem);
    keep_session(answer->headers);
    if (!answer->is_success()) body = answer->body;
    return {.status = answer->status,
            .was_answered = was_answered || (!method.empty() && read_body(*answer, body)),
            .location = location_of(*answer)};
  }

  static std::string location_of(const HttpAnswer& answer) {
    const std::string* location = find_header(answer.headers, "Location");
    return location == nullptr ? "" : *location;
  }

  void keep_session(const HttpHeaders& headers) {
    const std::string* session = find_header(headers, "Mcp-Session-Id");
    if (session == nullptr) return;
    const std::lock_guard lock(mutex_);
    session_ = *session;
  }

  /// A refusal may hold the answer, too: an error of JSON-RPC. A text ("Accepted") says that the answer comes
  /// elsewhere.
  bool read_body(const HttpAnswer& answer, const std::string& body) {
    const std::string where = name_ + ": the answer";
    if (body.empty() || !is_of_type(answer, "application/json")) return false;
    if (!answer.is_success() && !parse_mcp(body, where)) return false;
    return handlers_.on_message(body, where);
  }

  bool handle(const ServerSentEvent& event) {
    return event.event == "message" && handlers_.on_message(event.data, name_ + ": an event");
  }

  std::string refusal(const Posted& posted) const {
    std::string text = name_ + " answered with status " + std::to_string(posted.status);
    if (posted.status == 404 && !is_older()) text += ": it has ended the session, or there is no such address";
    if (posted.status == 401 || posted.status == 403) text += ": it wants a key (docs/tools.md: headers)";
    if (!posted.location.empty()) text += "; it names the address " + posted.location;
    return text;
  }

  /// Opens the stream that brings the answers, and waits for the address to post to.
  void listen(Deadline deadline) {
    listener_ = std::thread([this] {
      EventStream events(kLongestMessage);
      std::string problem;
      const auto answer = http_stream(
          request("GET"),
          {.time = kWholeRun, .answer_bytes = std::numeric_limits<std::size_t>::max(), .cancel = stop_.get_token()},
          [&](const HttpAnswer&, std::string_view piece) {
            const auto more = events.add(piece, [&](const ServerSentEvent& event) {
              if (event.event == "endpoint")
                problem = take_endpoint(event.data);
              else
                handle(event);
              return problem.empty();
            });
            if (!more) problem = more.error().message;
            return more && *more;
          });
      if (!answer) problem = answer.error().message;
      if (answer && !answer->is_success()) problem = "answered with status " + std::to_string(answer->status);
      end_listening(name_ + ": " + (problem.empty() ? "closed its stream of events" : problem));
    });
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [&] { return endpoint_ || !stream_end_.empty(); });
    if (endpoint_) return;
    throw PeerFailure(stream_end_.empty() ? name_ + " did not name an endpoint in time" : stream_end_);
  }

  std::string take_endpoint(const std::string& text) {
    auto endpoint = endpoint_of(url_, text);
    if (!endpoint) return endpoint.error().message;
    const std::lock_guard lock(mutex_);
    endpoint_ = std::move(endpoint).value();
    changed_.notify_all();
    return "";
  }

  void end_listening(const std::string& why) {
    {
      const std::lock_guard lock(mutex_);
      stream_end_ = why;
      changed_.notify_all();
    }
    handlers_.on_end(why);
  }

  void end_session() const {
    HttpRequest farewell = request("DELETE");
    if (find_header(farewell.headers, "Mcp-Session-Id") == nullptr) return;
    (void)http_exchange(farewell, {.time = kFarewell});
  }

  std::string name_;
  Url url_;
  HttpHeaders headers_;
  McpHandlers handlers_{};
  std::stop_source stop_{};
  std::thread listener_{};
  mutable std::mutex mutex_{};
  std::condition_variable changed_{};
  std::string session_{};
  std::string version_{};
  std::optional<Url> endpoint_{};  // of the older way
  std::string stream_end_{};       // why its stream is over
};

}  // namespace

std::unique_ptr<McpTransport> make_http_transport(const std::string& name, Url url, HttpHeaders headers) {
  return std::make_unique<HttpTransport>(name, std::move(url), std::move(headers));
}

}  // namespace carnot
