// `carnot import`: a GGUF file to a folder that the other commands take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "carnot/core/base/file.h"
#include "program.h"
#include "testing/paths.h"

namespace carnot::testing {
namespace {

using ::testing::HasSubstr;

TEST(ImportCommand, MakesAFolderThatGenerates) {
  const ScratchFolder scratch;
  const std::string file = recorded_path("gguf/smollm.gguf"), output = scratch.path("model");
  const auto imported = run_carnot({"import", file, "--output", output, "--dtype", "float32"});
  ASSERT_EQ(imported.exit, 0) << imported.err;
  EXPECT_THAT(imported.out, HasSubstr(": llama, 2 layers, "));
  const auto text = run_carnot({"generate", "--model", output, "--raw", "--max-tokens", "4", "Oslo"});
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_EQ(run_carnot({"tokenize", output}, "\"born in 2024\"\n").exit, 0);

  const auto again = run_carnot({"import", file, "--output", output});
  EXPECT_EQ(again.exit, 1);
  EXPECT_THAT(again.err, HasSubstr("--overwrite"));
  EXPECT_EQ(run_carnot({"import", file}).exit, 2) << "without --output";
}

TEST(ImportCommand, RefusesAFileThatIsNotAModelAndWritesNothing) {
  const ScratchFolder scratch;
  const auto refused = run_carnot({"import", scratch.write("x.gguf", "GGML"), "--output", scratch.path("model")});
  EXPECT_EQ(refused.exit, 1);
  EXPECT_THAT(refused.err, HasSubstr("x.gguf: is no GGUF file"));
  EXPECT_FALSE(std::filesystem::exists(scratch.path("model")));
}

}  // namespace
}  // namespace carnot::testing
