#include "carnot/serving/input_lines.h"

#include <algorithm>
#include <functional>

#include "carnot/core/base/file.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/text/json_problems.h"

namespace carnot {
namespace {

using Tokens = Result<std::vector<TokenId>>;

Tokens ids_of(const Json& list, const InputFormat& format) {
  if (!list.is_array()) return Error{"ids: expected a list of token ids, found " + shown(list)};
  std::vector<TokenId> tokens;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::int64_t id = list[i].is_number_integer() ? list[i].get<std::int64_t>() : -1;
    if (id < 0 || id >= format.vocab_size)
      return Error{"ids[" + std::to_string(i) + "]: expected a token id below " + std::to_string(format.vocab_size) +
                   ", found " + shown(list[i])};
    tokens.push_back(static_cast<TokenId>(id));
  }
  return tokens;
}

Tokens text_of(const Json& value, const std::string& key, const InputFormat& format) {
  if (!value.is_string()) return Error{key + ": expected a string, found " + shown(value)};
  if (format.tokenizer == nullptr)
    return Error{key + ": " + format.tokenizer_problem + "; without it only ids can be read"};
  return format.tokenizer->try_encode_from_begin(value.get_ref<const std::string&>());
}

Tokens conversation_of(std::vector<Message> messages, const InputFormat& format) {
  const bool has_system = !messages.empty() && messages.front().role == "system";
  if (!has_system && !format.system.empty())
    messages.insert(messages.begin(), {.role = "system", .content = format.system});
  if (const Status writable = format.chat->check_writable(messages); !writable)
    return Error{"messages: " + writable.error().message + "; expected messages that the chat format can write"};
  CARNOT_ASSIGN_OR_RETURN(auto opening, format.chat->try_render_opening(messages, ""));
  return std::move(opening.tokens);
}

Tokens prompt_of(const std::string& text, const InputFormat& format) {
  if (format.chat != nullptr) return conversation_of({{.role = "user", .content = text}}, format);
  return format.tokenizer->try_encode_from_begin(text);
}

Tokens messages_of(const Json& list, const InputFormat& format) {
  if (format.chat == nullptr) return Error{"messages: need a chat format; expected a prompt, or --chat"};
  if (!list.is_array() || list.empty()) return Error{"messages: expected a list of messages, found " + shown(list)};
  const std::vector<std::string> roles{"system", "user", "assistant", "tool"};
  std::vector<Message> messages;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = "messages[" + std::to_string(i) + "]";
    const Json& role = member(list[i], "role");
    const Json& content = member(list[i], "content");
    if (!list[i].is_object() || list[i].size() != 2 || !role.is_string() || !content.is_string())
      return Error{path + ": expected an object with the texts role and content, found " + shown(list[i])};
    if (std::find(roles.begin(), roles.end(), role.get_ref<const std::string&>()) == roles.end())
      return Error{path + ".role: expected system, user, assistant or tool, found " + shown(role)};
    messages.push_back({.role = role.get<std::string>(), .content = content.get<std::string>()});
  }
  if (messages.back().role == "assistant")
    return Error{"messages: the last one is the assistant's; expected another's"};
  return conversation_of(std::move(messages), format);
}

struct Kind {
  const char* key;
  Tokens (*read)(const Json& value, const InputFormat& format);
};

const std::vector<Kind> kPromptKinds = {{"prompt",
                                         [](const Json& value, const InputFormat& format) -> Tokens {
                                           if (!value.is_string())
                                             return Error{"prompt: expected a string, found " + shown(value)};
                                           return prompt_of(value.get<std::string>(), format);
                                         }},
                                        {"messages", messages_of},
                                        {"ids", ids_of}};

const std::vector<Kind> kSequenceKinds = {
    {"text", [](const Json& value, const InputFormat& format) { return text_of(value, "text", format); }},
    {"ids", ids_of}};

std::string keys_of(const std::vector<Kind>& kinds) {
  std::string text;
  for (const Kind& kind : kinds) text += (text.empty() ? "" : ", ") + std::string(kind.key);
  return text;
}

Tokens object_tokens(const Json& object, const std::vector<Kind>& kinds, const InputFormat& format) {
  const Kind* given = nullptr;
  for (const auto& [key, value] : object.items()) {
    const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.key == key; });
    if (kind == kinds.end() && key != "id") return Error{key + ": unknown key; expected " + keys_of(kinds) + " or id"};
    if (kind == kinds.end()) continue;
    if (given != nullptr)
      return Error{key + ": given together with " + given->key + "; expected one of " + keys_of(kinds)};
    given = &*kind;
  }
  if (given == nullptr) return Error{"has none of the keys " + keys_of(kinds)};
  return given->read(object.at(given->key), format);
}

/// `spare`: positions that must remain after the tokens.
Result<InputLine> checked(Tokens tokens, int spare, const InputFormat& format, const std::string& where) {
  if (!tokens) return Error{where + ": " + tokens.error().message};
  if (tokens->empty()) return Error{where + ": has no token; expected a non-empty string"};
  const int most = format.max_positions - spare;
  if (static_cast<int>(tokens->size()) > most)
    return Error{where + ": has " + std::to_string(tokens->size()) + " tokens; the model has positions for " +
                 std::to_string(most)};
  return InputLine{.tokens = std::move(tokens).value()};
}

Result<std::vector<InputLine>> read_lines(
    std::string_view text, const std::string& name,
    const std::function<Result<InputLine>(const Json&, const std::string&)>& read) {
  std::vector<InputLine> lines;
  std::vector<std::string> problems;
  std::size_t number = 0;
  for (const std::string_view line : split_lines(text)) {
    const std::string where = name + ":" + std::to_string(++number);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto json = parse_json(line, where);
    auto input = json ? read(*json, where) : Result<InputLine>(json.error());
    if (!input) {
      problems.push_back(input.error().message);
      if (problems.size() == kMaxProblems) break;
      continue;
    }
    const Json& id = member(*json, "id");
    if (!id.is_null()) input->id = id.dump(-1, ' ', false, Json::error_handler_t::replace);
    lines.push_back(std::move(input).value());
  }
  if (!problems.empty()) return join_errors(problems);
  if (lines.empty()) return Error{name + ": holds no line"};
  return lines;
}

}  // namespace

Result<InputLine> prompt_input(const std::string& text, const InputFormat& format, const std::string& where) {
  return checked(prompt_of(text, format), 1, format, where);
}

Result<InputLine> messages_input(const std::string& json, const InputFormat& format, const std::string& where) {
  CARNOT_ASSIGN_OR_RETURN(const auto messages, parse_json(json, where));
  return checked(messages_of(messages, format), 1, format, where);
}

Result<std::vector<InputLine>> prompt_lines(std::string_view text, const InputFormat& format, const std::string& name) {
  return read_lines(text, name, [&](const Json& line, const std::string& where) -> Result<InputLine> {
    if (line.is_string()) return prompt_input(line.get<std::string>(), format, where);
    if (!line.is_object()) return Error{where + ": expected a JSON string or an object, found " + shown(line)};
    return checked(object_tokens(line, kPromptKinds, format), 1, format, where);
  });
}

Result<std::vector<InputLine>> sequence_lines(std::string_view text, const InputFormat& format,
                                              const std::string& name) {
  return read_lines(text, name, [&](const Json& line, const std::string& where) -> Result<InputLine> {
    if (!line.is_object()) return Error{where + ": expected an object, found " + shown(line)};
    return checked(object_tokens(line, kSequenceKinds, format), 0, format, where);
  });
}

}  // namespace carnot
