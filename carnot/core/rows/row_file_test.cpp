#include "carnot/core/rows/row_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "carnot/core/rows/csv.h"

namespace carnot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The rows' places and texts, or the error.
std::string walked(const std::string& text, const std::string& name) {
  std::string all;
  const Status status = read_rows(
      text, name, [&](const nlohmann::ordered_json& row, const std::string& where, std::vector<std::string>& problems) {
        if (row.contains("bad")) problems.push_back(where + "bad");
        all += where + row.dump() + "\n";
      });
  return status ? all : status.error().message;
}

TEST(RowFile, HasTheSameRowsInEveryForm) {
  const std::string rows = R"({"a":"1","b":"x"})";
  EXPECT_EQ(walked("\n" + rows + "\n \n", "f.jsonl"), "f.jsonl:2: " + rows + "\n");
  EXPECT_EQ(walked("[" + rows + "]", "f.json"), "f.json[0]: " + rows + "\n");
  EXPECT_EQ(walked("a,b\n1,x\n", "f.csv"), "f.csv, record 1: " + rows + "\n");
}

TEST(RowFile, SaysAllThatIsWrongInTheOrderOfTheRows) {
  EXPECT_EQ(walked("{\"bad\":1}\n3\n{}\n{\"bad\":2}", "f.jsonl"),
            "f.jsonl:1: bad\nf.jsonl:2: expected a JSON object, found number\nf.jsonl:4: bad");
  EXPECT_EQ(walked("[{\"bad\":1}, 3]", "f.json"), "f.json[0]: bad\nf.json[1]: expected an object, found number");
  EXPECT_EQ(walked("a,b\n1\n", "f.csv"), "f.csv, record 1: 1 fields; expected 2, as in the header");
  EXPECT_EQ(walked(" \n", "f.jsonl"), "f.jsonl: no rows");
  EXPECT_EQ(walked("[]", "f.json"), "f.json: no rows");
}

TEST(Csv, KeepsRecordsFieldByField) {
  const auto parsed = parse_csv("a,b\r\n\"x\"\"y\",\"1\n2\"\n,\n\n\"\"\nlast,1", "f.csv");
  ASSERT_TRUE(parsed.ok());
  EXPECT_THAT(*parsed, ElementsAre(ElementsAre("a", "b"), ElementsAre("x\"y", "1\n2"), ElementsAre("", ""),
                                   ElementsAre(""), ElementsAre("last", "1")));
  EXPECT_THAT(parse_csv("a\n\"b", "f.csv").error().message, HasSubstr("f.csv:2: a quoted field without its end"));
}

}  // namespace
}  // namespace carnot
