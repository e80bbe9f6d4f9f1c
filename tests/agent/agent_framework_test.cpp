// The example of examples/agent with the real framework openai-agents as the harness: its requests, calls and answers
// are the trajectory. If no interpreter has the package, the tests are skipped; tests/agent/agent_framework_test.py
// provides one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "carnot/core/env/environment_boundary.h"
#include "carnot/worlds/entries.h"
#include "testing/prepared_environment.h"
#include "testing/test_packages.h"

namespace carnot {
namespace {

const std::string kExample = std::string(CARNOT_SOURCE_DIR) + "/examples/agent/";

class AgentFramework : public ::testing::Test {
 protected:
  void SetUp() override {
    factory_ = testing::prepared(make_agent(),
                                 {"command=[" + testing::python_with("clients") + ", " + kExample + "word_count.py]",
                                  "train_file=" + kExample + "words.jsonl", "timeout=250", "start_timeout=250"})
                   .value();
  }

  /// Opens the task; the word that it asks for.
  std::string open(Environment& environment) {
    const Opening opening = environment.open();
    check_opening(opening);
    EXPECT_EQ(opening.system, "Say how many letters the word has, as a number.");
    EXPECT_EQ(opening.tools.size(), 1u);
    EXPECT_EQ(opening.tools.empty() ? "" : opening.tools[0].name, "count_letters");
    return opening.history.empty() ? opening.user : opening.history.back().content;
  }

  std::shared_ptr<EnvironmentFactory> factory_{};
};

PolicyResponse counting(const std::vector<std::string>& words) {
  PolicyResponse response("Let me count.");
  for (const std::string& word : words)
    response.tool_calls.push_back({.name = "count_letters", .arguments = R"({"word": ")" + word + "\"}"});
  return response;
}

TEST_F(AgentFramework, ItsToolIsCalledAndItsAnswerIsRewarded) {
  const auto environment = factory_->make(Split::Train, 0);
  const std::string word = open(*environment);
  const Reply result = environment->step(counting({word, word + "s"}));
  check_reply(result);
  EXPECT_EQ(result.form, ReplyForm::ToolResult) << "what the framework sends again continues the same conversation";
  ASSERT_EQ(result.results.size(), 2u);
  EXPECT_EQ(result.results[0].text, std::to_string(word.size()));
  EXPECT_EQ(result.results[1].text, std::to_string(word.size() + 1));
  const Reply last = environment->step(std::to_string(word.size()));
  check_reply(last);
  EXPECT_TRUE(last.done && last.success);
  EXPECT_EQ(last.reward, 1);
  EXPECT_EQ(last.measures.at("said"), 1);
  EXPECT_EQ(last.measures.at("conversations"), 1);
}

TEST_F(AgentFramework, AWrongAnswerAndAnUnknownToolAreThePolicysFaults) {
  const auto environment = factory_->make(Split::Train, 1);
  open(*environment);
  const Reply wrong = environment->step("I do not know");
  EXPECT_TRUE(wrong.done && !wrong.success);
  EXPECT_EQ(wrong.reward, 0);
  EXPECT_EQ(wrong.measures.at("said"), 13);
  const auto other = factory_->make(Split::Train, 2);
  open(*other);
  PolicyResponse response("");
  response.tool_calls = {{.name = "count_stars", .arguments = "{}"}};
  const Reply unknown = other->step(response);
  EXPECT_TRUE(unknown.done);
  EXPECT_EQ(unknown.reward, 0);
}

}  // namespace
}  // namespace carnot
