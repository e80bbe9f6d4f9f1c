#include "carnot/core/rows/conversation.h"

#include <algorithm>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"

namespace carnot {
namespace {

/// Keys of messages that hold what a model said in a form that is not read.
constexpr const char* kUnreadSpeech[] = {"reasoning_content", "reasoning", "thinking", "function_call"};

/// Null if the object has no such member, too.
const OrderedJson& member(const OrderedJson& object, const char* key) {
  static const OrderedJson kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::string text_of(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string item(const std::string& list, std::size_t index) { return list + "[" + std::to_string(index) + "]"; }

class ConversationReader {
 public:
  ConversationReader(const OrderedJson& row, const std::string& where, std::vector<std::string>& problems)
      : row_(row), where_(where), problems_(problems) {}

  std::optional<Conversation> read() {
    const std::size_t before = problems_.size();
    if (!is_absent("messages"))
      read_messages("messages", true);
    else if (!member(row_, "prompt").is_null() && !member(row_, "completion").is_null())
      read_prompt_and_completion();
    else
      problem("expected messages, or prompt and completion, found " + columns());
    read_tools();
    if (problems_.size() == before) check_places();
    return problems_.size() == before ? std::optional(std::move(conversation_)) : std::nullopt;
  }

 private:
  void problem(const std::string& what) { problems_.push_back(where_ + what); }
  void expected(const std::string& place, const std::string& what, const OrderedJson& found) {
    problem(place + ": expected " + what + ", found " + shown(Json(found)));
  }

  std::string columns() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : row_.items()) names.push_back(name);
    return names.empty() ? "no columns" : join(names);
  }

  /// Also a cell of CSV with nothing in it.
  bool is_absent(const char* name) const { return member(row_, name).is_null() || member(row_, name) == ""; }

  /// The value of a column that may hold JSON as text; null where it is absent.
  OrderedJson column(const char* name) {
    if (is_absent(name)) return {};
    const OrderedJson& value = member(row_, name);
    if (!value.is_string()) return value;
    auto parsed = parse_json<OrderedJson>(value.get_ref<const std::string&>(), where_ + name);
    if (!parsed) problems_.push_back(parsed.error().message);
    return parsed ? std::move(parsed).value() : OrderedJson();
  }

  void read_messages(const char* name, bool are_learnt) {
    const std::size_t before = problems_.size();
    const OrderedJson list = column(name);
    if (problems_.size() > before) return;
    if (!list.is_array() || list.empty()) return expected(name, "a list of messages", list);
    for (std::size_t i = 0; i < list.size(); ++i) read_message(item(name, i), list[i], are_learnt);
  }

  void read_prompt_and_completion() {
    const auto read_side = [this](const char* name, const char* role, bool is_learnt) {
      const OrderedJson& side = member(row_, name);
      if (side.is_string())
        add({.role = role, .content = side.get<std::string>()}, is_learnt);
      else
        read_messages(name, is_learnt);
    };
    read_side("prompt", "user", false);
    read_side("completion", "assistant", true);
  }

  void add(Message message, bool is_learnt) {
    conversation_.is_learnt.push_back(is_learnt && message.role == "assistant");
    conversation_.messages.push_back(std::move(message));
  }

  void read_message(const std::string& place, const OrderedJson& given, bool is_learnt) {
    if (!given.is_object()) return expected(place, "a message {\"role\", \"content\"}", given);
    const OrderedJson& role = member(given, "role");
    Message message{.role = role.is_string() ? role.get<std::string>() : ""};
    const std::vector<std::string> roles{"system", "user", "assistant", "tool"};
    if (std::ranges::find(roles, message.role) == roles.end())
      return expected(place + ".role", "system, user, assistant or tool", role);
    for (const char* key : kUnreadSpeech)
      if (!member(given, key).is_null())
        problem(place + "." + key +
                ": is not read; expected calls in tool_calls, and thinking in content as the model " + "writes it");
    read_content(place + ".content", member(given, "content"), message);
    read_calls(place + ".tool_calls", member(given, "tool_calls"), message);
    const OrderedJson& id = member(given, "tool_call_id");
    if (id.is_string()) message.tool_call_id = id.get<std::string>();
    if (!id.is_null() && !id.is_string()) expected(place + ".tool_call_id", "a string", id);
    const OrderedJson& weight = member(given, "weight");
    if (!weight.is_null() && weight != 0 && weight != 1) expected(place + ".weight", "0 or 1", weight);
    add(std::move(message), is_learnt && weight != 0);
  }

  void read_content(const std::string& place, const OrderedJson& given, Message& message) {
    if (given.is_string()) {
      message.content = given.get<std::string>();
    } else if (given.is_array()) {
      for (std::size_t i = 0; i < given.size(); ++i) {
        const bool is_text =
            given[i].is_object() && member(given[i], "text").is_string() && member(given[i], "type") == "text";
        if (!is_text)
          expected(item(place, i), R"({"type": "text", "text": "..."})", given[i]);
        else
          message.content += given[i]["text"].get<std::string>();
      }
    } else if (!given.is_null()) {
      expected(place, "a string or a list of text parts", given);
    }
  }

  void read_calls(const std::string& place, const OrderedJson& given, Message& message) {
    const bool is_assistant = message.role == "assistant";
    if (!given.is_null() && !given.is_array()) return expected(place, "a list", given);
    if (!given.is_null() && !given.empty() && !is_assistant)
      return problem(place + ": are the " + message.role + "'s; expected calls of the assistant alone");
    for (std::size_t i = 0; !given.is_null() && i < given.size(); ++i) read_call(item(place, i), given[i], message);
    if (is_assistant && message.content.empty() && message.tool_calls.empty())
      problem(place + ": is empty, and so is the content; expected one of them");
  }

  void read_call(const std::string& place, const OrderedJson& given, Message& message) {
    const OrderedJson& function = given.is_object() && given.contains("function") ? given["function"] : given;
    if (!function.is_object() || !member(function, "name").is_string())
      return expected(place, R"({"type": "function", "function": {"name": "...", "arguments": {...}}})", given);
    ToolCall& call = message.tool_calls.emplace_back();
    call.name = function["name"].get<std::string>();
    const OrderedJson& arguments = member(function, "arguments");
    const auto object = arguments.is_string()
                            ? parse_json_object<OrderedJson>(arguments.get_ref<const std::string&>(), "arguments")
                            : Result<OrderedJson>(arguments);
    if (object && object->is_object())
      call.arguments = text_of(*object);
    else if (!arguments.is_null())
      expected(place + ".arguments", "a JSON object, or its text", arguments);
    if (member(given, "id").is_string()) call.id = given["id"].get<std::string>();
  }

  void read_tools() {
    const OrderedJson list = column("tools");
    if (list.is_null()) return;
    if (!list.is_array()) return expected("tools", "a list of functions", list);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const OrderedJson& tool = list[i];
      const bool is_wrapped = tool.is_object() && member(tool, "function").is_object();
      const OrderedJson& function = is_wrapped ? tool["function"] : tool;
      if (!function.is_object() || !member(function, "name").is_string())
        expected(item("tools", i), R"({"type": "function", "function": {"name": "...", ...}})", tool);
      else
        conversation_.tools.push_back(
            text_of(is_wrapped ? tool : OrderedJson{{"type", "function"}, {"function", tool}}));
    }
  }

  void check_places() {
    const auto& messages = conversation_.messages;
    const std::size_t first = conversation_.first_learnt();
    const auto is_system = [](const Message& message) { return message.role == "system"; };
    if (first == messages.size())
      problem("no message of the assistant to learn; expected one");
    else if (!conversation_.is_learnt.back())
      problem("the last message is " +
              (messages.back().role == "assistant" ? "one of weight 0" : "of the role " + messages.back().role) +
              "; expected one of the assistant, to learn");
    else if (std::all_of(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(first), is_system))
      problem("begins with the assistant; expected a user's message before the first one to learn");
  }

  const OrderedJson& row_;
  const std::string& where_;
  std::vector<std::string>& problems_;
  Conversation conversation_{};
};

}  // namespace

std::size_t Conversation::first_learnt() const {
  return static_cast<std::size_t>(std::ranges::find(is_learnt, true) - is_learnt.begin());
}

std::optional<Conversation> read_conversation(const OrderedJson& row, const std::string& where,
                                              std::vector<std::string>& problems) {
  return ConversationReader(row, where, problems).read();
}

}  // namespace carnot
