// docs/alarms.md has a row and a section for every alarm.
#include "carnot/core/alarm/alarms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "carnot/core/config/printer.h"
#include "page.h"

namespace carnot {
namespace {

using testing::expect_block;
using ::testing::HasSubstr;
using testing::matches;
using testing::page_text;
using testing::table_heading;
using testing::table_row;

constexpr const char* kAlarmsPage = "docs/alarms.md";

std::map<std::string, std::string> defaults() {
  AlarmOptions options;
  FieldTable table;
  table.add("alarm", options);
  std::map<std::string, std::string> values;
  for (const FieldRow& row : table.rows()) values[row.key] = row.value;
  return values;
}

std::string patience(const AlarmRow& row) {
  if (row.patience == nullptr) return "1";
  if (row.patience == &AlarmOptions::steps) return "`alarm.steps`";
  return "`alarm." + std::string(row.key) + "`";
}

TEST(Alarms, MatchThePagesTable) {
  const auto values = defaults();
  std::string table = table_heading({"alarm", "watches", "threshold", "default", "steps in a row"});
  for (const AlarmRow& row : alarms()) {
    const std::string name(row.name), key = "alarm." + std::string(row.key);
    ASSERT_TRUE(values.contains(key)) << key;
    table += table_row(
        {"[`" + name + "`](#" + name + ")", std::string(row.watches), "`" + key + "`", values.at(key), patience(row)});
  }
  expect_block(kAlarmsPage, "alarms", table);
}

TEST(Alarms, HaveASectionEach) {
  const std::string page = page_text(kAlarmsPage);
  std::vector<std::string> names;
  for (const AlarmRow& row : alarms()) {
    const std::string name(row.name), heading = "\n## " + name + "\n";
    names.push_back(name);
    const std::size_t begin = page.find(heading);
    ASSERT_NE(begin, std::string::npos) << name;
    const std::string section = page.substr(begin, page.find("\n## ", begin + heading.size()) - begin);
    for (const char* part : {"\n**Seen:** ", "\n**Usually:** ", "\n**Try:** "})
      EXPECT_THAT(section, HasSubstr(part)) << name;
  }
  EXPECT_EQ(matches(page, "\n## ([a-z_]+)"), names);
}

}  // namespace
}  // namespace carnot
