#include "carnot/tools/code/code_tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/json.h"
#include "carnot/tools/code/sandbox_fusion.h"
#include "testing/local_http_server.h"

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// Answers with what the call was, as a sandbox would.
class EchoRunner final : public CodeRunner {
 public:
  CodeResult run(const CodeCall& call) override {
    if (call.code == "fail") throw SandboxFailure("sandbox: was ended from outside");
    if (call.code == "slow") return {.exit_code = 137, .status = CodeStatus::Timeout, .seconds = call.seconds};
    std::string files;
    for (const auto& [name, content] : call.files) files += name + "=" + content + ";";
    return {.standard_output = call.code + "|" + call.input + "|" + files,
            .standard_error = "warned",
            .exit_code = call.code == "bad" ? 2 : 0,
            .status = call.code == "bad" ? CodeStatus::Error : CodeStatus::Ok,
            .seconds = 0.5};
  }
  std::string description() const override { return "an echo"; }
};

/// A server whose answers the real handler makes, and the client of it.
class SandboxFusion : public ::testing::Test {
 protected:
  SandboxFusion()
      : handler_(sandbox_fusion_handler(std::make_shared<EchoRunner>(), 30)),
        server_([this](const testing::ReceivedRequest& request) {
          struct Connected final : HttpConnection {
            bool is_open() const override { return true; }
          };
          const HttpReply reply =
              handler_({.method = request.method, .path = request.target, .body = request.body}, Connected{});
          bodies_.push_back(request.body);
          return testing::GivenAnswer{.status = reply.status, .body = reply.body};
        }),
        client_(open_sandbox_fusion(server_.url(), {.seconds = 7, .output_kb = 1}).value()) {}

  std::vector<std::string> bodies_{};
  HttpHandler handler_;
  testing::LocalHttpServer server_;
  std::shared_ptr<CodeRunner> client_;
};

TEST_F(SandboxFusion, ClientAndServerUnderstandEachOther) {
  const CodeResult good = client_->run({.code = "print(1)", .input = "typed"});
  EXPECT_EQ(good.standard_output, "print(1)|typed|");
  EXPECT_EQ(good.standard_error, "warned");
  EXPECT_EQ(good.status, CodeStatus::Ok);
  EXPECT_EQ(good.seconds, 0.5);
  const CodeResult bad = client_->run({.code = "bad"});
  EXPECT_EQ(bad.status, CodeStatus::Error);
  EXPECT_EQ(bad.exit_code, 2);
  const CodeResult slow = client_->run({.code = "slow", .seconds = 3});
  EXPECT_EQ(slow.status, CodeStatus::Timeout);
  EXPECT_EQ(slow.exit_code, 137);
  EXPECT_EQ(slow.seconds, 3);
  const auto sent = parse_json_object(bodies_.at(0), "body").value();
  for (const char* key :
       {"code", "language", "stdin", "compile_timeout", "run_timeout", "memory_limit_MB", "files", "fetch_files"})
    EXPECT_TRUE(sent.contains(key)) << key;
}

TEST_F(SandboxFusion, AFailingSandboxIsAnInfrastructureFailure) {
  try {
    (void)client_->run({.code = "fail"});
    FAIL() << "no failure";
  } catch (const SandboxFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("its sandbox failed: sandbox: was ended from outside"));
  }
  const testing::LocalHttpServer broken(
      [](const testing::ReceivedRequest&) { return testing::GivenAnswer{.status = 500, .body = "{}"}; });
  EXPECT_THROW((void)open_sandbox_fusion(broken.url(), {}).value()->run({.code = "1"}), SandboxFailure);
  EXPECT_THROW((void)open_sandbox_fusion("http://127.0.0.1:1", {}).value()->run({.code = "1"}), SandboxFailure);
}

TEST_F(SandboxFusion, LongOutputIsCutByTheClientToo) {
  const CodeResult result = client_->run({.code = std::string(3000, 'x')});
  EXPECT_EQ(result.standard_output.size(), 1024u);
  EXPECT_TRUE(result.truncated);
}

TEST(SandboxFusionServer, AnAnswerHasThePublishedFields) {
  const auto handler = sandbox_fusion_handler(std::make_shared<EchoRunner>(), 30);
  struct Connected final : HttpConnection {
    bool is_open() const override { return true; }
  };
  const HttpReply reply = handler(
      {.method = "POST",
       .path = "/run_code",
       .body = R"({"code": "x", "language": "python", "files": {"a/b": "aGVsbG8=", "c": ""}, "compile_timeout": 1})"},
      Connected{});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, R"({"status":"Success","message":"","compile_result":null,"run_result":{"status":"Finished",)"
                        R"("execution_time":0.5,"return_code":0,"stdout":"x||a/b=hello;c=;","stderr":"warned"},)"
                        R"("executor_pod_name":null,"files":{}})");
  EXPECT_EQ(handler({.method = "GET", .path = "/run_code"}, Connected{}).status, 404);
}

TEST(SandboxFusionServer, WhatItCannotServeIsRefusedWithEveryReason) {
  const auto refusal = [](const std::string& body) { return parse_run_code(body, 30).error().message; };
  EXPECT_THAT(refusal(R"({"language": "cpp", "run_timeout": -1, "fetch_files": ["a"], "stdin": 5})"),
              AllOf(HasSubstr("code: expected a string"), HasSubstr("language: expected python"),
                    HasSubstr("run_timeout: expected a number above 0"), HasSubstr("fetch_files: expected none"),
                    HasSubstr("stdin: expected a string")));
  EXPECT_THAT(refusal(R"({"code": "", "files": {"../a": ""}})"), HasSubstr("files: expected relative paths"));
  EXPECT_THAT(refusal(R"({"code": "", "files": {"a": "x"}})"), HasSubstr("base64"));
  EXPECT_EQ(parse_run_code(R"({"code": "1", "run_timeout": null})", 12).value().seconds, 12);
}

TEST(CodeTool, ShowsOutputThenErrorsThenWhyItWasStopped) {
  const CodeToolOptions options{.sandbox = {.seconds = 2.5, .memory_mb = 100}};
  const auto text = [&](const CodeResult& result) {
    const ToolResult shown = code_tool_result(result, options);
    return shown.status + ": " + shown.text;
  };
  EXPECT_EQ(text({.standard_output = "4\n"}), "ok: 4");
  EXPECT_EQ(text({}), "empty: The program printed nothing.");
  EXPECT_EQ(text({.standard_output = "1", .standard_error = "E: x\n", .exit_code = 1, .status = CodeStatus::Error}),
            "error: 1\nE: x");
  EXPECT_EQ(text({.exit_code = 3, .status = CodeStatus::Error}), "error: Error: the program ended with exit code 3.");
  EXPECT_EQ(text({.standard_output = "a\n", .exit_code = 137, .status = CodeStatus::Timeout}),
            "timeout: a\nError: the program was stopped: it takes longer than 2.5 s.");
  EXPECT_EQ(text({.exit_code = 137, .status = CodeStatus::Memory}),
            "error: Error: the program was stopped: it takes more than 100 MB of memory.");
  EXPECT_EQ(text({.standard_output = "xx", .truncated = true}),
            "ok: xx\n[the output is longer; this is its beginning]");
}

TEST(CodeTool, ReadsCodeWithAndWithoutAFence) {
  EXPECT_EQ(without_code_fence("print(1)"), "print(1)");
  EXPECT_EQ(without_code_fence("\n```python\nprint(1)\n```\n"), "print(1)\n");
  EXPECT_EQ(without_code_fence("```\nx = '```'\n"), "x = '```'");
  const auto tool = make_code_tool("python", std::make_shared<EchoRunner>(), {});
  EXPECT_EQ(tool->call(R"({"code": "```py\n1\n```"})", Tool::Deadline::max()).text, "1\n||\nwarned");
  EXPECT_EQ(tool->call(R"({"code": "1"})", std::chrono::steady_clock::now()).status, "timeout");
  EXPECT_THROW((void)tool->call(R"({"code": "fail"})", Tool::Deadline::max()), SandboxFailure);
}

}  // namespace
}  // namespace carnot
