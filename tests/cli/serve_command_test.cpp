// `carnot serve` as a program: it answers as `carnot generate` does, ends on a signal, and refuses bad flags.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/http/client.h"
#include "program.h"

namespace carnot::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

Result<HttpAnswer> ask(int port, const std::string& method, const std::string& path, const std::string& body = "") {
  const std::string address = "http://127.0.0.1:" + std::to_string(port) + path;
  return http_exchange({.method = method, .url = parse_url(address).value(), .body = body});
}

TEST(ServeCommand, AnswersWhatGenerateSaysAndEndsWithStatusZero) {
  const ScratchFolder scratch;
  const std::string recipe = scratch.write("tiny.yaml", "run_folder: " + scratch.path("run") + R"(
env: {name: search_qa, train_worlds: 1, held_out_worlds: 1}
model: {hidden_size: 32, intermediate_size: 64, num_layers: 1, num_heads: 2, num_kv_heads: 1, head_dim: 16}
sft: {steps: 1}
rollout: {group_size: 2}
train: {groups_per_step: 1}
eval: {tasks: 1}
)");
  ASSERT_EQ(run_carnot({"sft", recipe}).exit, 0);
  const std::string model = scratch.path("run");
  const auto generated = run_carnot({"generate", "--model", model, "--json", "--max-tokens", "12", "--temperature",
                                     "0.8", "--seed", "5", "--samples", "2", "Where is it ?"});
  ASSERT_EQ(generated.exit, 0) << generated.err;

  const int port = free_port();
  json answer;
  const auto served =
      interrupt_carnot({"serve", "--model", model, "--name", "small", "--port", std::to_string(port)}, [&] {
        if (!ask(port, "GET", "/health")) return false;
        const auto said = ask(port, "POST", "/v1/chat/completions",
                              R"({"model": "small", "messages": [{"role": "user", "content": "Where is it ?"}],
                              "max_tokens": 12, "temperature": 0.8, "seed": 5, "n": 2, "return_token_ids": true})");
        EXPECT_TRUE(said.ok());
        if (said) answer = json::parse(said->body, nullptr, false);
        return true;
      });
  EXPECT_EQ(served.exit, 0) << served.err;
  EXPECT_EQ(served.out, "http://127.0.0.1:" + std::to_string(port) + "/v1\n");
  EXPECT_THAT(served.err, HasSubstr("stopping soon"));
  std::size_t sample = 0;
  for (std::size_t begin = 0, end = 0; (end = generated.out.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const json line = json::parse(generated.out.substr(begin, end - begin));
    EXPECT_EQ(answer["choices"][sample]["token_ids"], line["ids"]);
    EXPECT_EQ(answer["choices"][sample++]["message"]["content"], line["text"]);
    EXPECT_EQ(answer["prompt_token_ids"], line["prompt_ids"]);
  }
  EXPECT_EQ(sample, 2u);
}

TEST(ServeCommand, RefusesAReachableAddressWithoutAKey) {
  const auto open = run_carnot({"serve", "--model", "m", "--host", "0.0.0.0"});
  EXPECT_EQ(open.exit, 1);
  EXPECT_THAT(open.err, HasSubstr("--host 0.0.0.0: other machines reach that address; expected --api-key-env NAME"));
  const auto no_key = run_carnot({"serve", "--model", "m", "--api-key-env", "NO_SUCH_KEY"});
  EXPECT_EQ(no_key.exit, 1);
  EXPECT_THAT(no_key.err, HasSubstr("no such environment variable; expected the NAME of one that holds the key"));
  EXPECT_THAT(run_carnot({"serve", "--model", "m", "--port", "70000"}).err,
              HasSubstr("--port: expected a number from 0 to 65535"));
}

}  // namespace
}  // namespace carnot::testing
