#include "carnot/core/base/temporary_name.h"

#include <gtest/gtest.h>

#include "carnot/core/base/file.h"

namespace carnot {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryNames, DifferAndAreDistinguishableFromAllOthers) {
  const std::string name = temporary_name().value();
  EXPECT_NE(name, temporary_name().value());
  EXPECT_TRUE(is_temporary_name(name));
  for (const std::string other : {"", ".tmp", "metrics.jsonl.tmp", ".carnot-.tmp", ".carnot-0123456789abcdeF.tmp"})
    EXPECT_FALSE(is_temporary_name(other)) << other;
  EXPECT_FALSE(is_temporary_name(name + "x"));
}

TEST(TemporaryNames, AreRemovedWithTheirContentAndNothingElseIs) {
  const fs::path folder = make_temporary_folder(fs::temp_directory_path()).value();
  const fs::path inner = make_temporary_folder(folder).value();
  ASSERT_TRUE(write_file_atomically(inner / "half", "x").ok());
  ASSERT_TRUE(make_temporary_file(folder).ok());
  ASSERT_TRUE(write_file_atomically(folder / "notes.tmp", "x").ok());
  ASSERT_TRUE(remove_temporaries(folder).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  EXPECT_TRUE(fs::exists(folder / "notes.tmp"));
  EXPECT_TRUE(remove_temporaries(folder / "none").ok());
  EXPECT_FALSE(make_temporary_folder(folder / "none").ok());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace carnot
