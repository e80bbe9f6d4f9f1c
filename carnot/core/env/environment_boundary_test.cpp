#include "carnot/core/env/environment_boundary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace carnot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// What check() finds wrong; empty if nothing.
template <class Check>
std::string broken_bound(const Check& check) {
  try {
    check();
  } catch (const EnvironmentFailure& failure) {
    return failure.what();
  }
  return "";
}

std::string complaint_about(const Reply& reply) {
  return broken_bound([&] { check_reply(reply); });
}

TEST(EnvironmentBoundary, LetsAnOrdinaryReplyPass) {
  EXPECT_EQ(complaint_about({.text = "wall", .reward = -3.5, .penalty = -0.1, .measures = {{"turns", 4}}}), "");
  EXPECT_EQ(complaint_about({.reward = kLargestReward, .penalty = -kLargestReward}), "");
}

TEST(EnvironmentBoundary, RefusesRewardsThatAreNotOrdinaryNumbers) {
  for (const double reward : {kNan, kInfinity, -kInfinity, 1e308, -2e9})
    EXPECT_THAT(complaint_about({.reward = reward}), HasSubstr("reply.reward is ")) << reward;
  EXPECT_EQ(complaint_about({.reward = kNan}), "reply.reward is nan; expected a number from -1e+09 to 1e+09");
}

TEST(EnvironmentBoundary, RefusesPenaltiesThatReward) {
  for (const double penalty : {0.1, kNan, kInfinity, -kInfinity})
    EXPECT_THAT(complaint_about({.penalty = penalty}), HasSubstr("reply.penalty is ")) << penalty;
  EXPECT_EQ(complaint_about({.penalty = 0.1}), "reply.penalty is 0.1; expected a number from -1e+09 to 0");
}

TEST(EnvironmentBoundary, NamesEverythingThatIsWrongAtOnce) {
  const Reply reply{
      .text = std::string(30'000'000, 'x'), .reward = kNan, .done = true, .measures = {{"turns", kInfinity}}};
  EXPECT_THAT(complaint_about(reply),
              AllOf(HasSubstr("reply.reward is nan"), HasSubstr("reply.text has 30000000 bytes"),
                    HasSubstr("reply.measures[turns] is inf")));
}

TEST(EnvironmentBoundary, IgnoresMeasuresThatAreNotRead) {
  EXPECT_EQ(complaint_about({.done = false, .measures = {{"turns", kNan}}}), "");
}

TEST(EnvironmentBoundary, RefusesAProtocolThatLeavesNoRoomForAnAnswer) {
  EXPECT_EQ(broken_bound([] { check_protocol({}); }), "");
  EXPECT_THAT(broken_bound([] { check_protocol({.stop_strings = {""}, .max_turns = 0, .max_response_tokens = -1}); }),
              AllOf(HasSubstr("protocol.stop_strings holds an empty text"), HasSubstr("protocol.max_turns is 0"),
                    HasSubstr("protocol.max_response_tokens is -1")));
}

TEST(EnvironmentBoundary, RefusesStringsThatAreTooLong) {
  const std::string text(kLongestTextBytes + 1, 'x');
  EXPECT_THAT(broken_bound([&] { check_opening({.user = text}); }), HasSubstr("opening.user has 1048577 bytes"));
  EXPECT_THAT(broken_bound([&] { check_text("anchor()", text); }), HasSubstr("anchor() has 1048577 bytes"));
  EXPECT_THAT(broken_bound([&] { check_info({text}, {{"hops", text}}); }),
              AllOf(HasSubstr("ground_truth has"), HasSubstr("info[hops] has")));
}

}  // namespace
}  // namespace carnot
