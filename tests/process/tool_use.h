// process/tool_use.h -- episodes of a data set with tools, and calls of them.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/worlds/dataset/environment.h"
#include "testing/prepared_environment.h"

namespace carnot::testing {

inline const std::string kTests = std::string(CARNOT_SOURCE_DIR) + "/tests/process/";
inline const std::string kFunctions = kTests + "tool_functions.py:";
inline const std::string kServer = "mcp python3 " + kTests + "mcp_server.py";

/// A response that calls one tool.
inline PolicyResponse call(const std::string& tool, const std::string& arguments, const std::string& id = "") {
  PolicyResponse response("I look.");
  response.tool_calls = {{.name = tool, .arguments = arguments, .id = id}};
  return response;
}

inline PolicyResponse calls(std::vector<ToolCall> all) {
  PolicyResponse response("I look.");
  response.tool_calls = std::move(all);
  return response;
}

inline std::vector<std::string> texts(const Reply& reply) {
  std::vector<std::string> all;
  for (const ToolMessage& result : reply.results) all.push_back(result.text);
  return all;
}

class ToolUseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("CARNOT_PYTHON", CARNOT_SOURCE_DIR "/python", 1);
    folder_ =
        std::filesystem::path(::testing::TempDir()) / ("carnot_tools_" + std::to_string(::getpid()) + "_" +
                                                       ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "rows.jsonl") << R"({"question": "12 * 34?", "answer": "408"})" << "\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<std::shared_ptr<EnvironmentFactory>> dataset(const std::string& tools,
                                                      std::vector<std::string> settings = {}) const {
    const std::string rows = (folder_ / "rows.jsonl").string();
    settings.insert(settings.end(), {"train_file=" + rows, "test_file=" + rows, "tools=[" + tools + "]"});
    return prepared(make_dataset(), settings);
  }

  std::string error_of(const std::string& tools, const std::vector<std::string>& settings = {}) const {
    const auto factory = dataset(tools, settings);
    return factory ? "" : factory.error().message;
  }

  std::filesystem::path folder_{};
};

/// An episode that is open.
inline std::unique_ptr<Environment> opened(const std::shared_ptr<EnvironmentFactory>& factory, std::int64_t index = 0) {
  auto environment = factory->make(Split::Train, index);
  (void)environment->open();
  return environment;
}

/// What a step throws.
inline std::string failure_of(Environment& environment, const PolicyResponse& response) {
  try {
    (void)environment.step(response);
  } catch (const std::runtime_error& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace carnot::testing
