// testing/conversations.h -- compares rows with the recordings in tests/golden/conversations.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "carnot/core/base/file.h"
#include "carnot/core/rows/demonstration_files.h"
#include "testing/paths.h"

namespace carnot::testing {

/// The rows of a recording through `chat`: the recorded ids, and what is said is what the mask marks, up to the end of
/// the last message; nothing that the mask marks comes after it.
inline void expect_recorded_masks(const ChatFamily& chat, const std::string& name) {
  const auto recorded =
      nlohmann::ordered_json::parse(read_file(source_path("tests/golden/conversations/" + name + ".json")).value());
  EXPECT_GE(recorded.at("cases").size(), 5u);
  for (const auto& one : recorded.at("cases")) {
    const auto tasks = parse_demonstrations(one.at("row").dump(), "row", chat, 4096);
    ASSERT_TRUE(tasks.ok()) << one.at("name") << ": " << tasks.error().message;
    const Demonstration& here = tasks->at(0).at(0);
    auto ids = one.at("ids").get<std::vector<TokenId>>();
    const auto mask = one.at("mask").get<std::vector<int>>();
    std::vector<bool> is_said(mask.begin(), mask.end());
    const std::size_t end = here.tokens.size();
    ASSERT_LE(end, ids.size()) << one.at("name");
    EXPECT_TRUE(std::find(is_said.begin() + static_cast<std::ptrdiff_t>(end), is_said.end(), true) == is_said.end());
    ids.resize(end);
    is_said.resize(end);
    EXPECT_EQ(here.tokens, ids) << chat.name() << ", " << one.at("name");
    EXPECT_EQ(here.is_said, is_said) << chat.name() << ", " << one.at("name");
  }
}

}  // namespace carnot::testing
