// testing/recorded_chats.h -- conversations as tools/golden/chat_templates.py records them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/data/message.h"
#include "testing/paths.h"

namespace carnot::testing {

/// tests/golden/PATH.json.
inline nlohmann::ordered_json recorded_chat(const std::string& path) {
  return nlohmann::ordered_json::parse(read_file(source_path("tests/golden/" + path + ".json")).value());
}

inline std::vector<Message> recorded_messages(const nlohmann::ordered_json& list) {
  std::vector<Message> messages;
  for (const auto& one : list) {
    Message message{
        .role = one.at("role"), .content = one.at("content"), .tool_call_id = one.value("tool_call_id", "")};
    for (const auto& call : one.value("tool_calls", nlohmann::ordered_json::array()))
      message.tool_calls.push_back({.name = call.at("function").at("name"),
                                    .arguments = call.at("function").at("arguments").dump(),
                                    .id = call.at("id")});
    messages.push_back(std::move(message));
  }
  return messages;
}

/// Of one conversation.
inline std::vector<std::string> recorded_tools(const nlohmann::ordered_json& one) {
  std::vector<std::string> tools;
  for (const auto& tool : one.at("tools")) tools.push_back(tool.dump());
  return tools;
}

}  // namespace carnot::testing
