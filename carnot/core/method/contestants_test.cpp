#include "carnot/core/method/contestants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "carnot/core/method/method.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_of(const std::string& text) {
  const auto parsed = parse_contestants(text);
  return parsed ? "" : parsed.error().message;
}

TEST(Contestants, StandBetweenCommasWithSettingsInBrackets) {
  const auto parsed = parse_contestants(" grpo ,grpo+ aem [method.aem.lambda=0.5  env.shares=[1, 0]],a2tgpo");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  ASSERT_EQ(parsed->size(), 3u);
  EXPECT_EQ((*parsed)[0].name(), "grpo");
  EXPECT_EQ((*parsed)[1].method, "grpo + aem");
  EXPECT_THAT((*parsed)[1].settings, ElementsAre("method.aem.lambda=0.5", "env.shares=[1, 0]"));
  EXPECT_EQ((*parsed)[1].name(), "grpo + aem [method.aem.lambda=0.5 env.shares=[1, 0]]");
  EXPECT_EQ((*parsed)[2].name(), "a2tgpo");
}

TEST(Contestants, HaveFoldersThatDifferAndThatAShellLeavesAlone) {
  const Contestant aem{.method = "grpo + aem"}, own{.method = "grpo + aem", .settings = {"train.epochs=2"}};
  EXPECT_EQ(aem.folder(), "grpo+aem");
  EXPECT_EQ(own.folder(), "grpo+aem,train.epochs=2");
  const Contestant a{.method = "grpo", .settings = {"env.shares=[1, 0]"}},
      b{.method = "grpo", .settings = {"env.shares=[1_ 0]"}};
  EXPECT_NE(a.folder(), b.folder());
  EXPECT_EQ(a.folder().find_first_of(" []/"), std::string::npos);
  const Contestant up{.method = "grpo", .settings = {"train.x=../../" + std::string(300, 'y')}};
  EXPECT_EQ(up.folder().find('/'), std::string::npos);
  EXPECT_LT(up.folder().size(), 140u);
}

TEST(Contestants, AllIsEveryMethodButStudiesWithAddOnsBehindGrpo) {
  const auto parsed = parse_contestants("all");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(std::ssize(*parsed), std::ranges::count(methods(), true, &MethodEntry::in_all));
  for (const Contestant& contestant : *parsed) EXPECT_TRUE(parse_method(contestant.method).ok()) << contestant.method;
  const auto is_aem = [](const Contestant& contestant) { return contestant.name() == "grpo + aem"; };
  EXPECT_TRUE(std::any_of(parsed->begin(), parsed->end(), is_aem));
}

TEST(Contestants, SayWhatIsWrong) {
  EXPECT_THAT(error_of(""), HasSubstr("expected a method"));
  EXPECT_THAT(error_of("grpo,,ppo"), HasSubstr("expected a method"));
  EXPECT_THAT(error_of("grpo [a=1"), HasSubstr("do not match"));
  EXPECT_THAT(error_of("grpo ]"), HasSubstr("do not match"));
  EXPECT_THAT(error_of("grpo [a=1] b=2"), HasSubstr("nothing behind"));
  EXPECT_THAT(error_of("grpo [epochs]"), HasSubstr("expected key=value in brackets, found \"epochs\""));
  EXPECT_THAT(error_of("grpo, grpo + aem, grpo+aem"), HasSubstr("\"grpo + aem\": is listed twice"));
}

}  // namespace
}  // namespace carnot
