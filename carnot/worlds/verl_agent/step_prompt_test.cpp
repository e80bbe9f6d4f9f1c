#include "carnot/worlds/verl_agent/step_prompt.h"

#include <gtest/gtest.h>

#include "carnot/worlds/python/python_text.h"

namespace carnot {
namespace {

TEST(VerlAgentAction, IsTheTextBetweenTheFirstTagsInLowerCase) {
  const auto action =
      read_verl_agent_action("<think>a</think><ACTION> Click[Buy Now]\n</action><action>b</action>", 20);
  EXPECT_EQ(action.text, "click[buy now]");
  EXPECT_TRUE(action.valid);
}

TEST(VerlAgentAction, NeedsThoughtsAndNoHanCharacterToBeValidButIsReadAllTheSame) {
  for (const char* response : {"<action>look</action>", "<think>a<action>look</action>",
                               "<think>\u4E2D</think><action>look</action>", "<THINK>a</THINK><action>look</action>"}) {
    const auto action = read_verl_agent_action(response, 20);
    EXPECT_EQ(action.text, "look") << response;
    EXPECT_FALSE(action.valid) << response;
  }
  EXPECT_TRUE(read_verl_agent_action("<think>\u3042</think><action>look</action>", 20).valid);
}

TEST(VerlAgentAction, IsTheEndOfAResponseWithoutTags) {
  const auto action = read_verl_agent_action("<think></think><action> I would Caf\u00C9", 6);
  EXPECT_EQ(action.text, "d caf\u00E9");
  EXPECT_FALSE(action.valid);
  EXPECT_EQ(read_verl_agent_action("ab", 6).text, "ab");
  const auto reversed = read_verl_agent_action("<think></think></action><action>", 6);
  EXPECT_EQ(reversed.text, "");
  EXPECT_TRUE(reversed.valid);
}

TEST(VerlAgentMemory, NumbersTheLastStepsByTheirPlaceInTheEpisode) {
  const std::vector<VerlAgentStep> steps = {{"a", "x"}, {"b", "y"}, {"c", "z"}};
  EXPECT_EQ(verl_agent_memory(steps, 2), "[Observation 2: 'b', Action 2: 'y']\n[Observation 3: 'c', Action 3: 'z']");
  EXPECT_EQ(verl_agent_memory(steps, 9).substr(0, 15), "[Observation 1:");
  EXPECT_EQ(verl_agent_memory({}, 2), "");
}

TEST(PythonLower, KnowsTheLettersWithAnOwnRule) {
  EXPECT_EQ(python_lower("AbC \u00C4\u03A3\u03A3 \u0130\xff"), "abc \u00E4\u03C3\u03C2 i\u0307\xff");
  EXPECT_EQ(python_lower("\u03A3 \u03A3a"), "\u03C3 \u03C3a");
}

}  // namespace
}  // namespace carnot
