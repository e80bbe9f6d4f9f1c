// tools/code/sandbox_fusion.h -- SandboxFusion's API, POST /run_code: its messages, a client, a server's
// answers.
//
//   {"code", "language": "python", "stdin", "run_timeout", "compile_timeout", "memory_limit_MB", "files",
//   "fetch_files"}
//   {"status": "Success" | "Failed" | "SandboxError", "message", "compile_result": null, "run_result": {"status":
//    "Finished" | "TimeLimitExceeded" | "Error", "execution_time", "return_code", "stdout", "stderr"},
//    "executor_pod_name": null, "files": {}}
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "carnot/http/server.h"
#include "carnot/tools/sandbox/code.h"
#include "carnot/tools/sandbox/options.h"

namespace carnot {

/// A request as a call. The error names every field that cannot be served: another language than Python, files to
/// fetch, fields of another type. Files' contents are base64.
Result<CodeCall> parse_run_code(std::string_view body, double usual_seconds);

/// The answer to a request whose code was run, and to one whose sandbox failed.
std::string run_code_answer(const CodeResult& result);
std::string run_code_failure(const std::string& why);

/// The result in an answer, `where` it came from in errors. "SandboxError" and an unreadable answer are errors.
Result<CodeResult> parse_run_code_answer(std::string_view body, const std::string& where);

/// Has the server at `url` run the code. An answer 504 is tried again, twice, after 1 s and 2 s.
Result<std::shared_ptr<CodeRunner>> open_sandbox_fusion(const std::string& url, const SandboxOptions& options);

/// Answers POST /run_code by `runner`, GET /v1/ping with "pong", and anything else with 404.
HttpHandler sandbox_fusion_handler(std::shared_ptr<CodeRunner> runner, double usual_seconds);

}  // namespace carnot
