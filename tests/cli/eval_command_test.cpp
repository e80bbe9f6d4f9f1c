// `carnot eval` of a model that is not a run's own: by --model, and behind a server by --endpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/base/file.h"
#include "carnot/http/client.h"
#include "program.h"
#include "testing/local_http_server.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string recipe_with(const ScratchFolder& scratch, const std::string& environment) {
  return scratch.write("r.yaml", "run_folder: " + scratch.path("run") + "\nenv: {" + environment + R"(}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
sft: {steps: 10, batch_tokens: 2048}
rollout: {group_size: 2, max_context_tokens: 2048}
train: {groups_per_step: 1}
eval: {tasks: 3, temperature: 0}
)");
}

bool is_up(int port) {
  return http_exchange({.url = parse_url("http://127.0.0.1:" + std::to_string(port) + "/health").value()}).ok();
}

/// What both must agree on.
json compared(const std::string& out) {
  json result = json::parse(out);
  for (const char* own : {"seconds", "entropy", "response_length", "requests", "prompt_tokens", "completion_tokens"})
    result.erase(own);
  return result;
}

TEST(EvalCommand, EqualsTheModelItselfThroughAServer) {
  const ScratchFolder scratch;
  const std::string recipe =
      recipe_with(scratch, "name: alfworld, task_source: " + source_path("tests/tasks/alfworld") +
                               ", max_steps: 4, max_response_tokens: 40");
  ASSERT_EQ(run_carnot({"sft", recipe}).exit, 0);
  const std::string model = scratch.path("run");
  for (const std::string agent : {"prompt", "react"}) {
    const auto own = run_carnot({"eval", recipe, "--model", model, "--agent", agent, "--json"});
    ASSERT_EQ(own.exit, 0) << own.err;
    EXPECT_EQ(compared(own.out).at("trials"), 2) << "each of the two games once";
    const int port = free_port();
    ProgramRun remote;
    const auto served =
        interrupt_carnot({"serve", "--model", model, "--name", "small", "--port", std::to_string(port)}, [&] {
          if (!is_up(port)) return false;
          remote = run_carnot({"eval", recipe, "--endpoint", "http://127.0.0.1:" + std::to_string(port) + "/v1",
                               "--endpoint-model", "small", "--agent", agent, "--json", "--transcripts",
                               scratch.path("said.jsonl")});
          return true;
        });
    EXPECT_EQ(served.exit, 0) << served.err;
    ASSERT_EQ(remote.exit, 0) << remote.err;
    EXPECT_EQ(compared(remote.out), compared(own.out)) << agent;
    const json cost = json::parse(remote.out);
    EXPECT_EQ(cost.at("requests"), 8) << "two tasks of four steps";
    EXPECT_GT(cost.at("completion_tokens"), 0);
    EXPECT_EQ(split_lines(*read_file(scratch.path("said.jsonl"))).size(), 2u);
  }
}

TEST(EvalCommand, SolvesProblemsWithToolsThroughAServerInReactsForm) {
  const ScratchFolder scratch;
  const std::string recipe =
      recipe_with(scratch, "name: gsm8k, train_file: " + source_path("tests/tasks/train.jsonl") +
                               ", test_file: " + source_path("tests/tasks/test.jsonl") + ", tools: [calculator]");
  const LocalHttpServer server([&](const ReceivedRequest& request) -> GivenAnswer {
    const json messages = json::parse(request.body).at("messages");
    const std::string last = messages.back().at("content");
    std::string said = "Thought: I multiply.\nAction: calculator[15 * 6]";
    if (last == "Observation: 90") said = "Thought: That is it.\nAction: Finish[90]";
    return {.body = json{{"choices", json::array({{{"message", {{"content", said}}}, {"finish_reason", "stop"}}})},
                         {"usage", {{"prompt_tokens", 5}, {"completion_tokens", 2}}}}
                        .dump()};
  });
  const auto run = run_carnot({"eval", recipe, "--endpoint", server.url("/v1"), "--endpoint-model", "m", "--agent",
                               "react", "--json", "eval.tasks=1"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const json result = json::parse(run.out);
  EXPECT_EQ(result.at("success"), 1);
  EXPECT_EQ(result.at("measures").at("tool_calls"), 1);
  EXPECT_EQ(result.at("requests"), 2);
  EXPECT_EQ(result.at("prompt_tokens"), 10);
  EXPECT_EQ(result.at("response_length"), 4);
  const auto table =
      run_carnot({"eval", recipe, "--endpoint", server.url("/v1"), "--endpoint-model", "m", "eval.tasks=1"});
  EXPECT_THAT(table.out, HasSubstr("m at " + server.url("/v1/chat/completions")));
  EXPECT_THAT(table.out, HasSubstr("completion tokens         2\n")) << "prompt: one answer, which calls nothing";
}

TEST(EvalCommand, SaysWhatIsMissingAndFailsWithTheServer) {
  const ScratchFolder scratch;
  const std::string recipe = recipe_with(scratch, "name: skeleton");
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"eval", recipe});
    const auto run = run_carnot(arguments);
    EXPECT_EQ(run.exit, 1);
    return run.err;
  };
  EXPECT_THAT(error({}), HasSubstr("model.path: names no model; expected one, or --model or --endpoint"));
  EXPECT_THAT(error({"--endpoint", "http://127.0.0.1:9/v1"}), HasSubstr("--endpoint-model: missing"));
  EXPECT_THAT(error({"--endpoint-model", "m"}), HasSubstr("--endpoint-model: has no effect without --endpoint"));
  EXPECT_THAT(error({"--endpoint", "http://127.0.0.1:9/v1", "--endpoint-model", "m", "--model", "x"}),
              HasSubstr("--model: has no effect with --endpoint"));
  EXPECT_THAT(error({"--endpoint", "http://127.0.0.1:9/v1", "--endpoint-model", "m", "--endpoint-key-env", "NO_SUCH"}),
              HasSubstr("key_variable: no such environment variable"));
  EXPECT_THAT(error({"--endpoint", "http://127.0.0.1:9/v1", "--endpoint-model", "m", "--endpoint-timeout", "0.2"}),
              HasSubstr("validation_0 (skeleton), trajectory 0: "));
}

}  // namespace
}  // namespace carnot::testing
