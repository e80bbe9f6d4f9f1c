#include "carnot/view/command/view_server.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <ostream>
#include <thread>

#include "carnot/core/base/json.h"
#include "carnot/http/server.h"
#include "carnot/view/command/viewed_run.h"
#include "carnot/view/page.h"

namespace carnot {
namespace {

constexpr std::chrono::milliseconds kSlice{50};

HttpReply refusal(int status, const std::string& why) {
  return {.status = status, .body = json_line(OrderedJson{{"error", why}})};
}

/// What the page asks for.
struct DataRequest {
  std::vector<std::int64_t> steps{};
  std::string methods{};
};

Result<DataRequest> parse_request(const std::string& body) {
  constexpr std::string_view kExpected = R"(expected {"steps": [1, 5], "methods": "grpo + aem"})";
  CARNOT_ASSIGN_OR_RETURN(const auto json, parse_json_object(body, "request"));
  DataRequest request;
  for (const auto& [key, value] : json.items()) {
    const bool steps = key == "steps" && value.is_array() &&
                       std::ranges::all_of(value, [](const Json& one) { return one.is_number_integer(); });
    if (steps)
      request.steps = value.template get<std::vector<std::int64_t>>();
    else if (key == "methods" && value.is_string())
      request.methods = value.template get<std::string>();
    else
      return Error{key + ": " + std::string(kExpected)};
  }
  return request;
}

/// The run, found again for each answer, since it grows.
class FollowedRun {
 public:
  explicit FollowedRun(const FollowOptions& options) : options_(options) {}

  Status open() {
    CARNOT_ASSIGN_OR_RETURN(auto run, find_viewed(options_.path, options_.tokenizer, /*growing=*/true));
    run_ = std::move(run);
    CARNOT_RETURN_IF_ERROR(first_page());
    return Done{};
  }

  HttpReply answer(const HttpCall& call) {
    const std::lock_guard lock(mutex_);
    if (const Status found = look_again(); !found) return refusal(500, found.error().message);
    if (call.method == "GET" && call.path == "/") return page();
    if (call.method == "GET" && call.path == "/progress") return {.body = progress()};
    if (call.method == "POST" && call.path == "/data") return data(call.body);
    return refusal(404, call.method + " " + call.path + ": expected GET /, GET /progress or POST /data");
  }

 private:
  /// Finds the steps that were added, and the tokenizer once there is one.
  Status look_again() {
    if (!run_.tokenizer) {
      CARNOT_ASSIGN_OR_RETURN(run_, find_viewed(options_.path, options_.tokenizer, /*growing=*/true));
    } else if (auto steps = rollouts_at(options_.path)) {
      run_.steps = std::move(steps).value();
    }
    return Done{};
  }

  Result<std::string> first_page() const {
    CARNOT_ASSIGN_OR_RETURN(auto steps, choose_steps(run_.steps, {}, options_.steps));
    CARNOT_ASSIGN_OR_RETURN(
        const auto made,
        make_page(run_,
                  {.steps = steps, .methods = options_.methods, .bytes = options_.bytes, .notes = alarms_of(run_)}));
    return made.page.html(made.head, /*served=*/true);
  }

  HttpReply page() const {
    const auto html = first_page();
    if (!html) return refusal(500, html.error().message);
    return {.body = *html, .content_type = "text/html; charset=utf-8"};
  }

  std::string progress() const {
    OrderedJson steps = OrderedJson::array();
    for (const RolloutsOfStep& step : run_.steps) steps.push_back(step.step);
    return json_line(
        OrderedJson{{"steps", steps},
                    {"notes", alarms_of(run_)},
                    {"curves", curves_of(run_)},
                    {"finished", !run_.run.empty() && std::filesystem::exists(run_.run / "summary.json")}});
  }

  HttpReply data(const std::string& body) const {
    const auto wanted = parse_request(body);
    if (!wanted) return refusal(400, wanted.error().message);
    PageRequest request{.methods = wanted->methods, .bytes = options_.bytes, .notes = alarms_of(run_)};
    for (const std::int64_t step : wanted->steps) {
      const auto found = std::ranges::find(run_.steps, step, &RolloutsOfStep::step);
      if (found == run_.steps.end()) return refusal(400, "there are no rollouts of step " + std::to_string(step));
      request.steps.push_back(*found);
    }
    const auto made = make_page(run_, request);
    return made ? HttpReply{.body = made->page.data(made->head)} : refusal(400, made.error().message);
  }

  const FollowOptions& options_;
  std::mutex mutex_{};
  ViewedRun run_{};
};

}  // namespace

Status follow_run(const FollowOptions& options, std::ostream& out, const std::function<bool()>& stop) {
  FollowedRun run(options);
  CARNOT_RETURN_IF_ERROR(run.open());
  CARNOT_ASSIGN_OR_RETURN(
      auto server, HttpServer::start({.port = options.port},
                                     [&](const HttpCall& call, const HttpConnection&) { return run.answer(call); }));
  out << "http://127.0.0.1:" << server->port() << "/ shows " << options.path.string() << "; Ctrl-C ends it"
      << std::endl;
  while (!stop()) std::this_thread::sleep_for(kSlice);
  server->stop();
  return Done{};
}

}  // namespace carnot
