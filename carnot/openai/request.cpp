#include "carnot/openai/request.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>

#include "carnot/base/json.h"
#include "carnot/base/nearest_word.h"

namespace carnot {
namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kMostStops = 16;
constexpr double kLeastTemperature = 1e-4;  // logits divided by it stay finite

std::string found(const OrderedJson& value) { return ", found " + shown(Json(value)); }

class Reader {
 public:
  explicit Reader(bool chat) { request.chat = chat; }

  void refuse(const std::string& field, const std::string& expected, const OrderedJson& value) {
    add(field, "expected " + expected + found(value));
  }
  void add(const std::string& field, const std::string& message) {
    if (problems.size() < kMaxProblems) problems.push_back({field, message});
  }

  bool flag(const std::string& field, const OrderedJson& value) {
    if (!value.is_boolean()) refuse(field, "true or false", value);
    return value.is_boolean() && value.get<bool>();
  }
  std::optional<std::int64_t> integer(const std::string& field, const OrderedJson& value, std::int64_t low,
                                      std::int64_t high) {
    // 1.0 is a whole number in JSON too.
    const bool whole = value.is_number_float() && std::floor(value.get<double>()) == value.get<double>() &&
                       std::abs(value.get<double>()) < 0x1p53;
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
      refuse(field, between(low, high), value);
      return std::nullopt;
    }
    if (value.is_number_integer() || whole) {
      const std::int64_t number = whole ? static_cast<std::int64_t>(value.get<double>()) : value.get<std::int64_t>();
      if (number >= low && number <= high) return number;
    }
    refuse(field, between(low, high), value);
    return std::nullopt;
  }
  std::optional<int> count(const std::string& field, const OrderedJson& value, int low, int high) {
    const auto number = integer(field, value, low, high);
    return number ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
  }
  std::optional<double> number(const std::string& field, const OrderedJson& value, double low, double high,
                               const std::string& expected) {
    if (value.is_number()) {
      const double given = value.get<double>();
      if (given >= low && given <= high) return given;
    }
    refuse(field, expected, value);
    return std::nullopt;
  }
  std::string text(const std::string& field, const OrderedJson& value) {
    if (value.is_string()) return value.get<std::string>();
    refuse(field, "a text", value);
    return {};
  }

  OpenAiRequest request{};
  std::vector<FieldProblem> problems{};
  std::optional<int> max_completion_tokens{};
  bool wants_log_probs = false;
  std::optional<int> top_log_probs{};
  std::string tool_choice = "auto";

 private:
  static std::string between(std::int64_t low, std::int64_t high) {
    return high == INT64_MAX ? "a whole number of at least " + std::to_string(low)
                             : "a whole number from " + std::to_string(low) + " to " + std::to_string(high);
  }
};

std::string item(const std::string& field, std::size_t index) { return field + "[" + std::to_string(index) + "]"; }

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("_-.:").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

/// Null where the object has no such key.
const OrderedJson& member(const OrderedJson& object, const char* key) {
  static const OrderedJson kNull;
  const auto place = object.find(key);
  return place == object.end() ? kNull : *place;
}

std::string unknown_field(const std::string& key, const std::vector<std::string>& known) {
  return unknown_word("field", std::string_view(key).substr(0, kLongestName), known);
}

/// Tells of keys that nobody reads.
void refuse_others(Reader& to, const OrderedJson& object, const std::string& field,
                   const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items())
    if (!value.is_null() && std::find(known.begin(), known.end(), key) == known.end())
      to.add(field + "." + key.substr(0, kLongestName), unknown_field(key, known));
}

// ---- messages

/// A text, or a list of parts with texts.
std::string read_content(Reader& to, const std::string& field, const OrderedJson& content) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    to.refuse(field, "a text or a list of text parts", content);
    return {};
  }
  std::string text;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const OrderedJson& part = content[i];
    const bool is_text = part.is_object() && member(part, "type") == "text" && member(part, "text").is_string();
    if (!is_text) {
      to.refuse(item(field, i), R"(a part {"type": "text", "text": ...}; images and sound are not read)", part);
      continue;
    }
    refuse_others(to, part, item(field, i), {"type", "text"});
    text += part["text"].get<std::string>();
  }
  return text;
}

ToolCall read_tool_call(Reader& to, const std::string& field, const OrderedJson& given) {
  ToolCall call;
  if (!given.is_object()) {
    to.refuse(field, "an object", given);
    return call;
  }
  refuse_others(to, given, field, {"id", "type", "function", "index"});
  if (const OrderedJson& type = member(given, "type"); !type.is_null() && type != "function")
    to.refuse(field + ".type", "\"function\"", type);
  const OrderedJson& id = member(given, "id");
  if (!id.is_string() || !is_name(id.get<std::string>()))
    to.refuse(field + ".id", "up to 128 letters, digits and -_.:", id);
  else
    call.id = id.get<std::string>();
  const OrderedJson& function = member(given, "function");
  if (!function.is_object()) {
    to.refuse(field + ".function", "an object with name and arguments", function);
    return call;
  }
  refuse_others(to, function, field + ".function", {"name", "arguments"});
  const OrderedJson& name = member(function, "name");
  if (!name.is_string() || !is_name(name.get<std::string>()))
    to.refuse(field + ".function.name", "up to 128 letters, digits and -_.:", name);
  else
    call.name = name.get<std::string>();
  const OrderedJson& arguments = member(function, "arguments");
  const auto object = arguments.is_string()
                          ? parse_json_object<OrderedJson>(arguments.get_ref<const std::string&>(), "JSON")
                          : Result<OrderedJson>(Error{""});
  if (object)
    call.arguments = arguments.get<std::string>();
  else
    to.refuse(field + ".function.arguments", "the text of a JSON object", arguments);
  return call;
}

Message read_message(Reader& to, const std::string& field, const OrderedJson& given) {
  Message message;
  if (!given.is_object()) {
    to.refuse(field, "an object with role and content", given);
    return message;
  }
  const OrderedJson& role = member(given, "role");
  message.role = role == "developer" ? "system" : role.is_string() ? role.get<std::string>() : "";
  const std::vector<std::string> roles{"system", "user", "assistant", "tool"};
  if (std::find(roles.begin(), roles.end(), message.role) == roles.end()) {
    to.refuse(field + ".role", "system, developer, user, assistant or tool", role);
    return message;
  }
  // What an answer of ours has and a client sends back as it is: nulls and empty lists.
  std::vector<std::string> known{"role", "content", "name"};
  if (message.role == "assistant") known.insert(known.end(), {"tool_calls"});
  if (message.role == "tool") known.emplace_back("tool_call_id");
  for (const auto& [key, value] : given.items()) {
    const bool empty = value.is_null() || (value.is_array() && value.empty());
    if (!empty && std::find(known.begin(), known.end(), key) == known.end())
      to.add(field + "." + key.substr(0, kLongestName), unknown_field(key, known));
  }
  if (const OrderedJson& calls = member(given, "tool_calls"); !calls.is_null() && message.role == "assistant") {
    if (!calls.is_array()) to.refuse(field + ".tool_calls", "a list", calls);
    for (std::size_t i = 0; calls.is_array() && i < calls.size(); ++i)
      message.tool_calls.push_back(read_tool_call(to, item(field + ".tool_calls", i), calls[i]));
  }
  if (message.role == "tool") {
    const OrderedJson& id = member(given, "tool_call_id");
    if (!id.is_string() || !is_name(id.get<std::string>()))
      to.refuse(field + ".tool_call_id", "the id of a call", id);
    else
      message.tool_call_id = id.get<std::string>();
  }
  const OrderedJson& content = member(given, "content");
  if (!content.is_null() || message.tool_calls.empty()) message.content = read_content(to, field + ".content", content);
  return message;
}

void read_messages(Reader& to, const OrderedJson& value) {
  if (!value.is_array() || value.empty()) return to.refuse("messages", "a list of at least one message", value);
  std::vector<Message>& messages = to.request.messages;
  for (std::size_t i = 0; i < value.size(); ++i) messages.push_back(read_message(to, item("messages", i), value[i]));
  if (messages.back().role == "assistant") to.add("messages", "the last one is the assistant's; expected another's");
}

void read_tools(Reader& to, const OrderedJson& value) {
  if (!value.is_array()) return to.refuse("tools", "a list", value);
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string field = item("tools", i);
    const OrderedJson& tool = value[i];
    const bool is_function =
        tool.is_object() && member(tool, "type") == "function" && member(tool, "function").is_object();
    if (!is_function) {
      to.refuse(field, R"({"type": "function", "function": {...}})", tool);
      continue;
    }
    const OrderedJson& function = member(tool, "function");
    refuse_others(to, tool, field, {"type", "function"});
    refuse_others(to, function, field + ".function", {"name", "description", "parameters", "strict"});
    if (const OrderedJson& strict = member(function, "strict"); !strict.is_null())
      to.flag(field + ".function.strict", strict);
    const OrderedJson& name = member(function, "name");
    if (!name.is_string() || !is_name(name.get<std::string>()))
      to.refuse(field + ".function.name", "up to 128 letters, digits and -_.:", name);
    const OrderedJson& description = member(function, "description");
    if (!description.is_string() && !description.is_null())
      to.refuse(field + ".function.description", "a text", description);
    const OrderedJson& parameters = member(function, "parameters");
    if (!parameters.is_object() && !parameters.is_null())
      to.refuse(field + ".function.parameters", "a JSON schema", parameters);
    OrderedJson kept = tool;
    for (const char* key : {"strict", "description", "parameters"})  // what says nothing is not rendered
      if (kept["function"].contains(key) && (kept["function"][key].is_null() || std::string_view(key) == "strict"))
        kept["function"].erase(key);
    to.request.tools.push_back(kept.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
  }
}

void read_tool_choice(Reader& to, const OrderedJson& value) {
  if (value != "none" && value != "auto")
    return to.refuse("tool_choice", "\"none\" or \"auto\"; a call cannot be forced", value);
  to.tool_choice = value.get<std::string>();
}

// ---- prompts

bool is_ids(const OrderedJson& list) {
  return std::all_of(list.begin(), list.end(), [](const OrderedJson& id) { return id.is_number(); });
}

RequestPrompt read_ids(Reader& to, const std::string& field, const OrderedJson& list) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < list.size(); ++i)
    if (const auto id = to.count(item(field, i), list[i], 0, static_cast<int>(kMaxTokenId))) ids.push_back(*id);
  return ids;
}

void read_prompt(Reader& to, const OrderedJson& value) {
  constexpr const char* kExpected = "a text, a list of texts, token ids or a list of lists of token ids";
  std::vector<RequestPrompt>& prompts = to.request.prompts;
  if (value.is_string()) {
    prompts.emplace_back(value.get<std::string>());
  } else if (!value.is_array() || value.empty()) {
    return to.refuse("prompt", kExpected, value);
  } else if (is_ids(value)) {
    prompts.push_back(read_ids(to, "prompt", value));
  } else {
    if (value.size() > static_cast<std::size_t>(kMostChoices))
      return to.add("prompt", "expected at most " + std::to_string(kMostChoices) + " prompts, found " +
                                  std::to_string(value.size()));
    for (std::size_t i = 0; i < value.size(); ++i) {
      const OrderedJson& one = value[i];
      if (one.is_string() == value[0].is_string() && one.is_string())
        prompts.emplace_back(one.get<std::string>());
      else if (one.is_array() && value[0].is_array() && is_ids(one))
        prompts.push_back(read_ids(to, item("prompt", i), one));
      else
        to.refuse(item("prompt", i), value[0].is_string() ? "a text like the first" : "a list of token ids", one);
    }
  }
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (std::visit([](const auto& prompt) { return prompt.empty(); }, prompts[i]))
      to.add(prompts.size() == 1 ? "prompt" : item("prompt", i), "is empty; expected at least one token");
}

// ---- all fields

void read_stop(Reader& to, const OrderedJson& value) {
  const auto add = [&](const std::string& field, const OrderedJson& one) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty())
      return to.refuse(field, "a text that is not empty", one);
    to.request.stop.push_back(one.get<std::string>());
  };
  if (!value.is_array()) return add("stop", value);
  if (value.size() > kMostStops) return to.refuse("stop", "at most " + std::to_string(kMostStops) + " texts", value);
  for (std::size_t i = 0; i < value.size(); ++i) add(item("stop", i), value[i]);
}

void read_stream_options(Reader& to, const OrderedJson& value) {
  if (!value.is_object()) return to.refuse("stream_options", "an object", value);
  refuse_others(to, value, "stream_options", {"include_usage", "include_obfuscation"});
  if (const OrderedJson& usage = member(value, "include_usage"); !usage.is_null())
    to.request.include_usage = to.flag("stream_options.include_usage", usage);
  if (member(value, "include_obfuscation") == true)
    to.add("stream_options.include_obfuscation", "not supported; expected false");
}

enum class In { Both, Chat, Completions };

struct Field {
  const char* name;
  In in;
  std::function<void(Reader&, const OrderedJson&)> read;
};

/// Not supported: only what leaves the answer as it is.
Field neutral(const char* name, In in, const char* expected,
              const std::function<bool(const OrderedJson&)>& is_neutral) {
  return {name, in, [=](Reader& to, const OrderedJson& value) {
            if (!is_neutral(value)) to.refuse(name, std::string(expected) + ": more is not supported", value);
          }};
}
/// Does not change the answer, whatever it says.
Field ignored(const char* name, In in = In::Both) {
  return {name, in, [](Reader&, const OrderedJson&) {}};
}

bool is_empty(const OrderedJson& value) { return (value.is_object() || value.is_array()) && value.empty(); }
bool is_zero(const OrderedJson& value) { return value.is_number() && value.get<double>() == 0; }
bool is_false(const OrderedJson& value) { return value == false; }
bool is_text_format(const OrderedJson& value) {
  return value.is_object() && value.size() == 1 && member(value, "type") == "text";
}

const std::vector<Field>& fields() {
  static const std::vector<Field> kFields = {
      {"model", In::Both, [](Reader& to, const OrderedJson& value) { to.request.model = to.text("model", value); }},
      {"messages", In::Chat, read_messages},
      {"tools", In::Chat, read_tools},
      {"tool_choice", In::Chat, read_tool_choice},
      {"prompt", In::Completions, read_prompt},
      {"n", In::Both,
       [](Reader& to, const OrderedJson& value) {
         to.request.samples = to.count("n", value, 1, kMostChoices).value_or(1);
       }},
      {"temperature", In::Both,
       [](Reader& to, const OrderedJson& value) {
         if (!is_zero(value) && value.is_number() && value.get<double>() < kLeastTemperature)
           return to.refuse("temperature", "0 or a number from 0.0001 on", value);
         to.request.temperature = to.number("temperature", value, 0, 1e6, "0 or a number from 0.0001 on");
       }},
      {"top_p", In::Both,
       [](Reader& to, const OrderedJson& value) {
         to.request.top_p = to.number("top_p", value, 1e-9, 1, "a number above 0, at most 1");
       }},
      {"top_k", In::Both,
       [](Reader& to, const OrderedJson& value) {  // vLLM's way to say "all" is -1
         if (const auto count = to.count("top_k", value, -1, 1'000'000'000)) to.request.top_k = std::max(*count, 0);
       }},
      {"max_tokens", In::Both,
       [](Reader& to, const OrderedJson& value) {
         to.request.max_tokens = to.count("max_tokens", value, 1, 1'000'000'000);
       }},
      {"max_completion_tokens", In::Chat,
       [](Reader& to, const OrderedJson& value) {
         to.max_completion_tokens = to.count("max_completion_tokens", value, 1, 1'000'000'000);
       }},
      {"seed", In::Both,
       [](Reader& to, const OrderedJson& value) {
         if (const auto seed = to.integer("seed", value, INT64_MIN, INT64_MAX))
           to.request.seed = static_cast<std::uint64_t>(*seed);
       }},
      {"stop", In::Both, read_stop},
      {"logprobs", In::Chat,
       [](Reader& to, const OrderedJson& value) { to.wants_log_probs = to.flag("logprobs", value); }},
      {"logprobs", In::Completions,
       [](Reader& to, const OrderedJson& value) {
         to.request.likeliest = to.count("logprobs", value, 0, kMostLikeliest);
       }},
      {"top_logprobs", In::Chat,
       [](Reader& to, const OrderedJson& value) {
         to.top_log_probs = to.count("top_logprobs", value, 0, kMostLikeliest);
       }},
      {"stream", In::Both, [](Reader& to, const OrderedJson& value) { to.request.stream = to.flag("stream", value); }},
      {"stream_options", In::Both, read_stream_options},
      {"return_token_ids", In::Both,
       [](Reader& to, const OrderedJson& value) { to.request.return_token_ids = to.flag("return_token_ids", value); }},

      neutral("presence_penalty", In::Both, "0", is_zero),
      neutral("frequency_penalty", In::Both, "0", is_zero),
      neutral("logit_bias", In::Both, "nothing", is_empty),
      neutral("response_format", In::Chat, R"({"type": "text"})", is_text_format),
      neutral("functions", In::Chat, "none, and tools instead", is_empty),
      neutral("modalities", In::Chat, "[\"text\"]",
              [](const OrderedJson& value) { return value == OrderedJson::array({"text"}); }),
      neutral("echo", In::Completions, "false", is_false),
      neutral("best_of", In::Completions, "1", [](const OrderedJson& value) { return value == 1; }),
      neutral("suffix", In::Completions, "none", [](const OrderedJson& value) { return value == ""; }),
      // How many calls there are is up to the model, as it is at OpenAI where this is true.
      neutral("parallel_tool_calls", In::Chat, "true", [](const OrderedJson& value) { return value == true; }),

      ignored("user"),
      ignored("metadata"),
      ignored("store", In::Chat),
      ignored("service_tier"),
      ignored("safety_identifier"),
      ignored("prompt_cache_key"),
      ignored("prompt_cache_retention"),
  };
  return kFields;
}

bool is_of(const Field& field, bool chat) { return field.in == In::Both || (field.in == In::Chat) == chat; }

void check_together(Reader& to) {
  OpenAiRequest& request = to.request;
  if (request.max_tokens && to.max_completion_tokens && request.max_tokens != to.max_completion_tokens)
    to.add("max_tokens", "given together with another max_completion_tokens; expected one of them");
  if (to.max_completion_tokens) request.max_tokens = to.max_completion_tokens;
  if (to.wants_log_probs) request.likeliest = to.top_log_probs.value_or(0);
  if (to.top_log_probs && !to.wants_log_probs) to.add("top_logprobs", "needs logprobs: true");
  if (request.include_usage && !request.stream) to.add("stream_options", "needs stream: true");
  if (to.tool_choice == "none") request.tools.clear();
  const auto prompts = request.chat ? 1 : static_cast<std::int64_t>(request.prompts.size());
  if (prompts * request.samples > kMostChoices)
    to.add("n", "expected at most " + std::to_string(kMostChoices) + " texts in all, found " +
                    std::to_string(prompts * request.samples));
}

ReadRequest read(std::string_view body, bool chat) {
  const auto json = parse_json_object<OrderedJson>(body, "the body");
  if (!json) return std::vector<FieldProblem>{{"", json.error().message}};
  Reader to(chat);
  std::vector<std::string> known;
  for (const Field& field : fields())
    if (is_of(field, chat)) known.emplace_back(field.name);
  for (const auto& [key, value] : json->items()) {
    if (value.is_null()) continue;
    bool read = false;
    for (const Field& field : fields()) {
      if (!is_of(field, chat) || key != field.name) continue;
      field.read(to, value);
      read = true;
    }
    if (!read) to.add(key.substr(0, kLongestName), unknown_field(key, known));
  }
  const char* needed = chat ? "messages" : "prompt";
  if (member(*json, needed).is_null()) to.add(needed, "is missing");
  check_together(to);
  if (!to.problems.empty()) return std::move(to.problems);
  return std::move(to.request);
}

}  // namespace

ReadRequest read_chat_request(std::string_view body) { return read(body, true); }
ReadRequest read_completion_request(std::string_view body) { return read(body, false); }

}  // namespace carnot
