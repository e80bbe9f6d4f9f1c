#include "carnot/studies/continuation_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

class ContinuationFiles : public ::testing::Test {
 protected:
  ~ContinuationFiles() override { fs::remove_all(folder_); }

  fs::path folder_ = fs::temp_directory_path() / ("carnot_continuations_" + std::to_string(::getpid()));
  fs::path path_ = folder_ / "sub" / "continuations.jsonl";
};

TEST_F(ContinuationFiles, BatchesComeBackAsTheyWereAdded) {
  const std::vector<Continuations> first{{.scores = {0.1, std::nullopt, -1.0 / 3}, .sampled_tokens = 41}, {}};
  {
    auto file = ContinuationFile::open(path_).value();
    EXPECT_EQ(file.find("first"), nullptr);
    ASSERT_TRUE(file.add("first", first).ok());
    ASSERT_TRUE(file.add("second", {{.scores = {1.0}, .sampled_tokens = 2}}).ok());
  }
  const auto again = ContinuationFile::open(path_).value();
  ASSERT_NE(again.find("first"), nullptr);
  ASSERT_EQ(again.find("first")->size(), 2u);
  EXPECT_EQ(again.find("first")->at(0).scores, first[0].scores);
  EXPECT_EQ(again.find("first")->at(0).sampled_tokens, 41);
  EXPECT_TRUE(again.find("first")->at(1).scores.empty());
  ASSERT_NE(again.find("second"), nullptr);
  EXPECT_EQ(again.find("third"), nullptr);
}

TEST_F(ContinuationFiles, ALineThatIsNoBatchIsNamed) {
  auto file = ContinuationFile::open(path_).value();
  ASSERT_TRUE(file.add("first", {}).ok());
  for (const std::string line :
       {"{\"key\": 3, \"states\": []}", "{\"key\": \"a\", \"states\": [{\"scores\": [\"x\"], \"tokens\": 1}]}",
        "{\"key\": \"a\", \"states\": [{\"scores\": []}]}", "{\"key\": \"a\"", "[]"}) {
    const std::string before = read_file(path_).value();
    std::ofstream(path_, std::ios::app) << line << "\n";
    const auto read = ContinuationFile::open(path_);
    ASSERT_FALSE(read.ok()) << line;
    EXPECT_THAT(read.error().message, ::testing::HasSubstr("continuations.jsonl:2"));
    ASSERT_TRUE(write_file_atomically(path_, before).ok());
  }
}

}  // namespace
}  // namespace carnot
