#include "carnot/core/base/process_environment.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace carnot {
namespace {

TEST(KeyVariable, SaysWhetherItIsMissingEmptyOrNotAKey) {
  const auto read = [](const char* value) {
    ::setenv("CARNOT_TEST_KEY", value, 1);
    const auto key = key_of_variable("CARNOT_TEST_KEY", "--key-env");
    ::unsetenv("CARNOT_TEST_KEY");
    return key ? *key : key.error().message;
  };
  EXPECT_EQ(key_of_variable("", "--key-env").value(), "");
  EXPECT_EQ(
      key_of_variable("sk-secret", "--key-env").error().message,
      "--key-env: no such environment variable; expected the NAME of one that holds the key, never the key itself");
  EXPECT_EQ(read(" \n"), "--key-env: the environment variable is set but empty; expected one that holds the key");
  EXPECT_EQ(read("a\nb"), "--key-env: the variable's value has control characters; expected a key");
  EXPECT_EQ(read("key\n"), "key");
}

}  // namespace
}  // namespace carnot
