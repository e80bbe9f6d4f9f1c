#include "carnot/worlds/ragen/thoughts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "carnot/core/env/environment.h"
#include "testing/field_settings.h"

namespace carnot {
namespace {

TEST(IdleThoughts, AreSentencesOfAtLeastSoManyWords) {
  RandomStream random(1);
  EXPECT_EQ(idle_thoughts({}, random), "");
  EXPECT_EQ(RandomStream(1).below(1 << 30), random.below(1 << 30)) << "nothing was drawn";
  EXPECT_EQ(idle_thoughts({.idle_words = 1, .variety = 0}, random), " Now the morning feels calm today.");
  for (const int words : {7, 20, 60}) {
    const std::string text = idle_thoughts({.idle_words = words}, random);
    EXPECT_GE(std::count(text.begin(), text.end(), ' '), words);
    EXPECT_EQ(text.back(), '.');
  }
}

TEST(IdleThoughts, HaveTheEntropyThatTheHeaderSays) {
  constexpr int kDraws = 40000;
  for (const double variety : {0.05, 0.3, 0.75}) {
    RandomStream random(7);
    std::map<std::string, int> seen;
    for (int i = 0; i < kDraws; ++i) ++seen[idle_thoughts({.idle_words = 1, .variety = variety}, random)];
    double entropy = 0;
    for (const auto& [text, count] : seen) entropy -= count / double{kDraws} * std::log(count / double{kDraws});
    const double part = -variety * std::log(variety) - (1 - variety) * std::log(1 - variety) + variety * std::log(3.0);
    // The plug-in estimate is too low by about (outcomes - 1) / (2 draws).
    EXPECT_NEAR(entropy, 5 * part, 0.03) << variety;
  }
}

/// The first response of a demonstration.
std::string first_response(const std::string& name, const std::map<std::string, std::string>& settings) {
  const auto factory = make_environment_factory(name).value();
  testing::FieldSettings fields(settings);
  factory->fields(fields);
  EXPECT_TRUE(fields.unused().empty());
  EXPECT_TRUE(factory->prepare(0).ok());
  const auto environment = factory->make_instance(123);
  environment->open();
  return factory->script(*environment, 0, RandomStream(3))->respond("").text;
}

TEST(IdleThoughts, StandBetweenWhatIsNotedAndThePlanOrInItsPlace) {
  for (const std::string name : {"frozen_lake", "sokoban", "sudoku"}) {
    const std::string usual = first_response(name, {});
    const std::string idle = first_response(name, {{"thoughts.idle_words", "6"}, {"thoughts.variety", "0"}});
    const std::size_t plan = usual.find(" Plan");
    ASSERT_NE(plan, std::string::npos) << usual;
    EXPECT_EQ(idle, usual.substr(0, plan) + " Now the morning feels calm today." + usual.substr(plan));
    const std::string blind = first_response(name, {{"thoughts.plan", "false"}});
    EXPECT_EQ(blind, usual.substr(0, plan) + usual.substr(usual.find("</think>")));
  }
}

}  // namespace
}  // namespace carnot
