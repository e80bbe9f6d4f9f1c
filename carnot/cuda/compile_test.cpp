// Every device program compiles for the GPUs that we know of. Without NVRTC this says so and is skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "carnot/cuda/nvrtc.h"
#include "testing/paths.h"
#include "testing/site_packages.h"

namespace carnot::cuda {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CompiledByNvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Nvrtc::open(testing::site_packages());
    ASSERT_TRUE(opened.ok()) << opened.error().message << "; tools/install_nvrtc.sh installs it";
    nvrtc_ = std::make_unique<Nvrtc>(std::move(opened).value());
  }

  std::unique_ptr<Nvrtc> nvrtc_;
};

TEST_F(CompiledByNvrtc, IsEveryDeviceProgramForEveryArchitecture) {
  EXPECT_FALSE(device_programs().empty());
  for (const int architecture : {80, 90, 100}) {
    EXPECT_THAT(nvrtc_->architectures(), Contains(architecture)) << "NVRTC " << nvrtc_->version();
    for (const DeviceProgram& program : device_programs()) {
      const auto code = nvrtc_->compile(program, architecture);
      ASSERT_TRUE(code.ok()) << code.error().message;
      EXPECT_THAT(*code, StartsWith("\x7f"
                                    "ELF"));
      for (const std::string& kernel : program.kernels) EXPECT_THAT(*code, HasSubstr(kernel));
    }
  }
}

TEST_F(CompiledByNvrtc, IsAssemblyOfTheNewestKnownForANewerGpu) {
  for (const DeviceProgram& program : device_programs()) {
    const auto code = nvrtc_->compile(program, 990);
    ASSERT_TRUE(code.ok()) << code.error().message;
    EXPECT_THAT(*code, HasSubstr(".target sm_" + std::to_string(nvrtc_->architectures().back())));
    for (const std::string& kernel : program.kernels) EXPECT_THAT(*code, HasSubstr(".entry " + kernel));
  }
}

TEST_F(CompiledByNvrtc, NamesAnErrorWithItsLine) {
  const auto code = nvrtc_->compile(
      {.name = "broken", .text = "#include \"carnot/cuda/statistics_parameters.h\"\nvoid f() { undeclared(); }\n"}, 90);
  ASSERT_FALSE(code.ok());
  EXPECT_THAT(code.error().message, StartsWith("broken: NVRTC " + nvrtc_->version() +
                                               " does not compile it for sm_90: NVRTC_ERROR_COMPILATION\n"));
  EXPECT_THAT(code.error().message, HasSubstr("broken.cu(2): error"));
  EXPECT_THAT(code.error().message, HasSubstr("undeclared"));
  const auto without_header = nvrtc_->compile({.name = "lost", .text = "#include \"missing.h\"\n"}, 90);
  ASSERT_FALSE(without_header.ok());
  EXPECT_THAT(without_header.error().message, HasSubstr("missing.h"));
}

TEST_F(CompiledByNvrtc, FailsForAnUnknownArchitecture) {
  const auto code = nvrtc_->compile(device_programs()[0], 11);
  ASSERT_FALSE(code.ok());
  EXPECT_THAT(code.error().message, HasSubstr("sm_11"));
}

TEST(NvrtcLibrary, ThatIsMissingOrInvalidIsNamed) {
  const char* before = std::getenv("CARNOT_NVRTC");
  const std::string kept = before != nullptr ? before : "";
  setenv("CARNOT_NVRTC", "/nowhere/libnvrtc.so", 1);
  EXPECT_THAT(Nvrtc::open({}).error().message, StartsWith("NVRTC does not open: there is no /nowhere/libnvrtc.so"));
  setenv("CARNOT_NVRTC", "libm.so.6", 1);
  EXPECT_THAT(Nvrtc::open({}).error().message,
              StartsWith("libm.so.6 is no NVRTC of CUDA 12 or 13: it lacks nvrtcGetErrorString"));
  if (kept.empty())
    unsetenv("CARNOT_NVRTC");
  else
    setenv("CARNOT_NVRTC", kept.c_str(), 1);
}

}  // namespace
}  // namespace carnot::cuda
