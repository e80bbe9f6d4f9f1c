#include "carnot/view/chart/table.h"

#include <gtest/gtest.h>

#include <limits>

#include "carnot/core/base/check.h"

namespace carnot {
namespace {

TEST(Table, InMarkdownIsAlignedAndKeepsItsColumns) {
  Table table{.columns = {"method", "±"}};
  table.add("a|b", 1.5);
  table.add("größer", 2);
  EXPECT_EQ(markdown(table),
            "| method | ±   |\n"
            "|--------|----:|\n"
            "| a\\|b   | 1.5 |\n"
            "| größer | 2   |\n");
  EXPECT_ANY_THROW(table.add("one cell"));
}

TEST(Table, GivesItsColumnsAndTheRowsThatHoldACell) {
  Table table{.columns = {"method", "step", "mean"}};
  table.add("grpo", 1, 0.5);
  table.add("aem", 1, 0.25);
  table.add("grpo", 2, 0.75);
  EXPECT_EQ(table.only("method", "grpo").numbers("mean"), (std::vector<double>{0.5, 0.75}));
  EXPECT_EQ(table.only("step", 1.0).numbers("mean"), (std::vector<double>{0.5, 0.25}));
  EXPECT_ANY_THROW(table.numbers("median"));
  EXPECT_ANY_THROW(table.numbers("method"));
}

TEST(NumberText, KeepsFourSignificantDigits) {
  EXPECT_EQ(number_text(0.123456), "0.1235");
  EXPECT_EQ(number_text(71.5), "71.5");
  EXPECT_EQ(number_text(1234567.8), "1234568");
  EXPECT_EQ(number_text(-2), "-2");
  EXPECT_EQ(number_text(0.0000123), "1.23e-05");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "-");
}

}  // namespace
}  // namespace carnot
