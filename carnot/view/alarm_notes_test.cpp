#include "carnot/view/alarm_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AlarmNotes, NameTheStepsInWhichAnAlarmLasts) {
  EXPECT_THAT(alarm_notes(R"({"step": 1, "alarms/truncated": 1}
{"step": 2, "alarms/truncated": 1, "alarms/no_signal": 1}
{"step": 3, "alarms/truncated": 0, "alarms/no_signal": 0}
{"step": 4, "alarms/truncated": 1
{"step": 5, "alarms/truncated": 1}
)"),
              ElementsAre("Alarm no_signal in step 2: every score equal since the start (docs/alarms.md).",
                          "Alarm truncated in steps 1 to 2, 5: share of trajectories that end at a token limit "
                          "(docs/alarms.md)."));
  EXPECT_THAT(alarm_notes("{\"step\": 1, \"actor/entropy\": 1}\n"), IsEmpty());
  EXPECT_THAT(alarm_notes(""), IsEmpty());
}

}  // namespace
}  // namespace carnot
