// testing/invented_and_published.h -- tests that run on invented data in the repository, and on published data of the
// same format if it is available.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "testing/missing.h"

namespace carnot::testing {

/// The parameter says whether the data is published: INSTANTIATE_TEST_SUITE_P(Data, ..., ::testing::Bool(),
/// testing::data_name).
class InventedAndPublished : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (published()) {
      CARNOT_NEEDS_PUBLISHED_DATA();
    }
  }
  static bool published() { return GetParam(); }
};

inline std::string data_name(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "Published" : "Invented";
}

}  // namespace carnot::testing
