#include "carnot/core/run/trainer_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::HasSubstr;

std::string problem_of(const std::string& text) {
  const auto state = parse_trainer_state(text, "trainer_state.json");
  return state ? "none" : state.error().message;
}

TEST(TrainerStateFile, ComesBackAsWritten) {
  const TrainerState state{.step = 7,
                           .seed = -3,
                           .sampled_tokens = 123'456'789'012,
                           .kernels = "avx512, products amx",
                           .optimizer = UpdateCounts{.updates = 5, .skipped = 2},
                           .critic_optimizer = UpdateCounts{.updates = 4},
                           .coefficients = {{"kl", 0.1}, {"entropy", -1e-300}},
                           .alarms = {{"no_signal/on", 1}, {"high_entropy/first", 0.125}},
                           .unwritten_metrics = {{"actor/lr", 1e-4}}};
  EXPECT_EQ(parse_trainer_state(trainer_state_json(state), "trainer_state.json").value(), state);
  const TrainerState plain{};
  EXPECT_EQ(parse_trainer_state(trainer_state_json(plain), "trainer_state.json").value(), plain);
}

TEST(TrainerStateFile, NumbersThatAreNoCountsAreRefusedAllAtOnce) {
  const std::string all = problem_of(
      R"({"version": 1, "step": 1e300, "seed": 0.5, "sampled_tokens": -1, "kernels": 2, "coefficients": {"kl": null},
                                         "optimizer": {"updates": 18446744073709551615, "skipped": -1}})");
  for (const char* key :
       {"step", "seed", "sampled_tokens", "kernels", "coefficients.kl", "optimizer: updates", "optimizer: skipped"})
    EXPECT_THAT(all, HasSubstr(std::string("trainer_state.json: ") + key + ": expected a")) << all;
  EXPECT_THAT(problem_of(R"({"version": 2, "step": 1, "seed": 0, "coefficients": {}})"),
              HasSubstr("version: expected at most 1"));
  EXPECT_THAT(problem_of("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(problem_of(std::string(100'000, '[')), HasSubstr("nests deeper"));
}

}  // namespace
}  // namespace carnot
