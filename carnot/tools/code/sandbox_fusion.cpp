#include "carnot/tools/code/sandbox_fusion.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>

#include "carnot/core/base/json_fields.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/http/client.h"

namespace carnot {
namespace {

constexpr int kTries = 3;
constexpr double kLongestRun = 1e6;  ///< seconds

std::optional<std::string> decoded_base64(const std::string& text) {
  if (text.size() % 4 != 0 || text.size() > kMaxJsonBytes) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size =
      ::EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                        reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  const auto padding =
      static_cast<std::size_t>(std::count(text.end() - std::min<std::ptrdiff_t>(2, std::ssize(text)), text.end(), '='));
  bytes.resize(static_cast<std::size_t>(size) - std::min(padding, static_cast<std::size_t>(size)));
  return bytes;
}

/// A path beneath the working folder that one line of a request can name.
bool is_file_name(const std::string& name) {
  if (name.empty() || name.starts_with('/') || name.find('\n') != std::string::npos ||
      name.find('\0') != std::string::npos)
    return false;
  return ("/" + name + "/").find("/../") == std::string::npos;
}

void read_files(const JsonFields& reader, std::map<std::string, std::string>& files) {
  const Json* given = reader.find("files");
  if (given == nullptr) return;
  if (!given->is_object()) return reader.expected("files", "an object of names and base64");
  for (const auto& [name, content] : given->items()) {
    auto bytes = content.is_string() ? decoded_base64(content.get<std::string>()) : std::nullopt;
    if (!is_file_name(name) || !bytes)
      reader.expected("files", "relative paths and base64");
    else
      files.emplace(name, std::move(*bytes));
  }
}

std::string answer_body(const char* status, const std::string& message, OrderedJson run) {
  return json_line(OrderedJson{{"status", status},
                               {"message", message},
                               {"compile_result", nullptr},
                               {"run_result", std::move(run)},
                               {"executor_pod_name", nullptr},
                               {"files", OrderedJson::object()}});
}

class SandboxFusionClient final : public CodeRunner {
 public:
  SandboxFusionClient(Url url, const SandboxOptions& options)
      : url_(url.append("run_code")), options_(options), where_(url_.shown()) {}

  CodeResult run(const CodeCall& call) override {
    if (call.code.size() > static_cast<std::size_t>(options_.code_kb) << 10)
      return {.standard_error = "The code is longer than " + std::to_string(options_.code_kb) + " KB.\n",
              .exit_code = 1,
              .status = CodeStatus::Refused};
    const double seconds = std::min(call.seconds, options_.seconds);
    const std::string body = json_line(OrderedJson{{"code", with_replacement_characters(call.code)},
                                                   {"language", "python"},
                                                   {"stdin", call.input},
                                                   {"compile_timeout", seconds},
                                                   {"run_timeout", seconds},
                                                   {"memory_limit_MB", options_.memory_mb},
                                                   {"files", OrderedJson::object()},
                                                   {"fetch_files", OrderedJson::array()}});
    auto result = parse_run_code_answer(exchange(body, seconds), where_);
    if (!result) throw SandboxFailure(result.error().message);
    for (std::string* text : {&result->standard_output, &result->standard_error}) cut(*text, result->truncated);
    return std::move(result).value();
  }

  std::string description() const override { return "SandboxFusion at " + where_; }

 private:
  std::string exchange(const std::string& body, double seconds) const {
    const std::chrono::milliseconds time(static_cast<std::int64_t>(1000 * (seconds + kSecondsForTheServer)));
    for (int tries = 1;; ++tries) {
      const auto answer = http_exchange(
          {.method = "POST", .url = url_, .headers = {{"Content-Type", "application/json"}}, .body = body},
          {.time = time});
      if (!answer) throw SandboxFailure(answer.error().message);
      if (answer->is_success()) return answer->body;
      if (answer->status != 504 || tries == kTries)
        throw SandboxFailure(where_ + ": answered with status " + std::to_string(answer->status));
      std::this_thread::sleep_for(std::chrono::seconds(tries));
    }
  }

  void cut(std::string& text, bool& truncated) const {
    text = with_replacement_characters(text);
    std::size_t most = static_cast<std::size_t>(options_.output_kb) << 10;
    if (text.size() <= most) return;
    while (most > 0 && continues_character(text[most])) --most;
    text.resize(most);
    truncated = true;
  }

  static constexpr double kSecondsForTheServer = 30;
  Url url_;
  SandboxOptions options_;
  std::string where_;
};

}  // namespace

Result<CodeCall> parse_run_code(std::string_view body, double usual_seconds) {
  CARNOT_ASSIGN_OR_RETURN(const auto given, parse_json_object(body, "request"));
  std::vector<std::string> problems;
  const JsonFields reader(given, "request", problems);
  CodeCall call{.seconds = usual_seconds};
  std::string language = "python";
  if (reader.find("code") == nullptr) reader.expected("code", "a string");
  reader.read("code", call.code);
  reader.read("stdin", call.input);
  reader.read("language", language);
  if (language != "python") reader.expected("language", "python");
  reader.read("run_timeout", call.seconds);
  if (!(call.seconds > 0 && call.seconds <= kLongestRun)) reader.expected("run_timeout", "a number above 0");
  read_files(reader, call.files);
  if (const auto* wanted = reader.find("fetch_files"); wanted != nullptr && !(wanted->is_array() && wanted->empty()))
    reader.expected("fetch_files", "none: files are not given back");
  if (!problems.empty()) return join_errors(problems);
  return call;
}

std::string run_code_answer(const CodeResult& result) {
  const bool is_late = result.status == CodeStatus::Timeout;
  OrderedJson run{{"status", is_late ? "TimeLimitExceeded" : "Finished"},
                  {"execution_time", result.seconds},
                  {"return_code", nullptr},
                  {"stdout", result.standard_output},
                  {"stderr", result.standard_error}};
  if (!is_late) run["return_code"] = result.exit_code;
  return answer_body(result.status == CodeStatus::Ok ? "Success" : "Failed", "", std::move(run));
}

std::string run_code_failure(const std::string& why) { return answer_body("SandboxError", why, nullptr); }

Result<CodeResult> parse_run_code_answer(std::string_view body, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto given, parse_json_object(body, where));
  std::vector<std::string> problems;
  const JsonFields reader(given, where, problems);
  std::string status, message;
  reader.read("status", status);
  reader.read("message", message);
  if (!problems.empty()) return join_errors(problems);
  if (status == "SandboxError") return Error{where + ": its sandbox failed: " + message};
  const Json* run = reader.find("run_result");
  if (run == nullptr || !run->is_object()) return Error{where + ": run_result: expected an object"};
  const JsonFields ran(*run, where + ": run_result", problems);
  CodeResult result;
  std::string end;
  double code = 0;
  ran.read("status", end);
  ran.read("stdout", result.standard_output);
  ran.read("stderr", result.standard_error);
  ran.read("execution_time", result.seconds);
  ran.read("return_code", code);  // null if the server has ended the program
  if (end != "Finished" && end != "TimeLimitExceeded" && end != "Error")
    ran.expected("status", "Finished, TimeLimitExceeded or Error");
  if (std::abs(code) > 1e6) ran.expected("return_code", "an exit code");
  if (!problems.empty()) return join_errors(problems);
  constexpr int kKilled = 137;
  result.exit_code = end == "TimeLimitExceeded" ? kKilled : static_cast<int>(code);
  result.status = end == "TimeLimitExceeded"                   ? CodeStatus::Timeout
                  : end == "Finished" && result.exit_code == 0 ? CodeStatus::Ok
                                                               : CodeStatus::Error;
  return result;
}

Result<std::shared_ptr<CodeRunner>> open_sandbox_fusion(const std::string& url, const SandboxOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(auto parsed, parse_url(url));
  return std::shared_ptr<CodeRunner>(std::make_shared<SandboxFusionClient>(std::move(parsed), options));
}

HttpHandler sandbox_fusion_handler(std::shared_ptr<CodeRunner> runner, double usual_seconds) {
  return [runner = std::move(runner), usual_seconds](const HttpCall& call, const HttpConnection&) -> HttpReply {
    if (call.method == "GET" && call.path == "/v1/ping") return {.body = "\"pong\""};
    if (call.method != "POST" || call.path != "/run_code")
      return {.status = 404, .body = json_line(OrderedJson{{"detail", "expected POST /run_code"}})};
    const auto wanted = parse_run_code(call.body, usual_seconds);
    if (!wanted) return {.status = 422, .body = json_line(OrderedJson{{"detail", wanted.error().message}})};
    try {
      return {.body = run_code_answer(runner->run(*wanted))};
    } catch (const SandboxFailure& failure) {
      return {.body = run_code_failure(failure.what())};
    }
  };
}

}  // namespace carnot
