#include "carnot/core/kernel/kernel_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace carnot::kernel {
namespace {

using ::testing::HasSubstr;

class ChoiceOfKernels : public ::testing::Test {
 protected:
  ~ChoiceOfKernels() override { ::unsetenv("CARNOT_KERNELS"); }
  static void set(const char* value) { ::setenv("CARNOT_KERNELS", value, 1); }
};

TEST_F(ChoiceOfKernels, OfOneSetLeavesTheNarrowerOnes) {
  set("avx2");
  EXPECT_TRUE(check_kernel_choice());
  EXPECT_TRUE(may_use("baseline"));
  EXPECT_TRUE(may_use("avx2"));
  for (const char* wider : {"avx512", "avx512_bf16", "amx"}) EXPECT_FALSE(may_use(wider)) << wider;
}

TEST_F(ChoiceOfKernels, OfNothingLeavesAllSets) {
  for (const char* set_to : {"", "sse"}) {
    set(set_to);
    EXPECT_TRUE(may_use("amx"));
    EXPECT_TRUE(may_use("baseline"));
  }
}

TEST_F(ChoiceOfKernels, OfAnUnknownSetIsRefused) {
  set("sse");
  EXPECT_THAT(check_kernel_choice().error().message,
              HasSubstr("CARNOT_KERNELS: is 'sse'; expected amx, avx512_bf16, avx512, avx2 or baseline"));
  set("");
  EXPECT_TRUE(check_kernel_choice());
}

}  // namespace
}  // namespace carnot::kernel
