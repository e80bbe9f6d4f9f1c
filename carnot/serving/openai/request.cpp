#include "carnot/serving/openai/request.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "carnot/serving/openai/field_reader.h"

namespace carnot {
namespace {

/// As many values as a context of half a million token ids, and more, has; each takes up to 64 bytes.
constexpr JsonLimits kRequestLimits{.values = std::size_t{1} << 20};
constexpr std::size_t kMostStops = 16;
constexpr double kLeastTemperature = 1e-4;  // logits divided by it stay finite

void read_tool_choice(FieldReader& to, const OrderedJson& value) {
  if (value != "none" && value != "auto")
    return to.refuse("tool_choice", "\"none\" or \"auto\"; a call cannot be forced", value);
  to.tool_choice = value.get<std::string>();
}

// ---- prompts

bool is_ids(const OrderedJson& list) {
  return std::all_of(list.begin(), list.end(), [](const OrderedJson& id) { return id.is_number(); });
}

RequestPrompt read_ids(FieldReader& to, const std::string& field, const OrderedJson& list) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < list.size() && !to.is_full(); ++i)
    if (const auto id = to.count(list_item(field, i), list[i], 0, static_cast<int>(kMaxTokenId))) ids.push_back(*id);
  return ids;
}

void read_prompt(FieldReader& to, const OrderedJson& value) {
  constexpr const char* kExpected = "a string, a list of strings, token ids or a list of lists of token ids";
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
        prompts.push_back(read_ids(to, list_item("prompt", i), one));
      else
        to.refuse(list_item("prompt", i), value[0].is_string() ? "a string like the first" : "a list of token ids",
                  one);
    }
  }
  for (std::size_t i = 0; i < prompts.size(); ++i)
    if (std::visit([](const auto& prompt) { return prompt.empty(); }, prompts[i]))
      to.add(prompts.size() == 1 ? "prompt" : list_item("prompt", i), "is empty; expected at least one token");
}

// ---- all fields

void read_stop(FieldReader& to, const OrderedJson& value) {
  const auto add = [&](const std::string& field, const OrderedJson& one) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty())
      return to.refuse(field, "a non-empty string", one);
    to.request.stop.push_back(one.get<std::string>());
  };
  if (!value.is_array()) return add("stop", value);
  if (value.size() > kMostStops) return to.refuse("stop", "at most " + std::to_string(kMostStops) + " texts", value);
  for (std::size_t i = 0; i < value.size(); ++i) add(list_item("stop", i), value[i]);
}

void read_stream_options(FieldReader& to, const OrderedJson& value) {
  if (!value.is_object()) return to.refuse("stream_options", "an object", value);
  refuse_others(to, value, "stream_options", {"include_usage", "include_obfuscation"});
  if (const OrderedJson& usage = json_member(value, "include_usage"); !usage.is_null())
    to.request.include_usage = to.flag("stream_options.include_usage", usage);
  if (json_member(value, "include_obfuscation") == true)
    to.add("stream_options.include_obfuscation", "not supported; expected false");
}

enum class In { Both, Chat, Completions };

struct Field {
  const char* name;
  In in;
  std::function<void(FieldReader&, const OrderedJson&)> read;
};

/// Not supported: only what leaves the answer as it is.
Field neutral(const char* name, In in, const char* expected,
              const std::function<bool(const OrderedJson&)>& is_neutral) {
  return {name, in, [=](FieldReader& to, const OrderedJson& value) {
            if (!is_neutral(value)) to.refuse(name, std::string(expected) + ": more is not supported", value);
          }};
}
/// Does not change the answer, whatever it says.
Field ignored(const char* name, In in = In::Both) {
  return {name, in, [](FieldReader&, const OrderedJson&) {}};
}

bool is_empty(const OrderedJson& value) { return (value.is_object() || value.is_array()) && value.empty(); }
bool is_zero(const OrderedJson& value) { return value.is_number() && value.get<double>() == 0; }
bool is_false(const OrderedJson& value) { return value == false; }
bool is_text_format(const OrderedJson& value) {
  return value.is_object() && value.size() == 1 && json_member(value, "type") == "text";
}

const std::vector<Field> kFields = {
    {"model", In::Both, [](FieldReader& to, const OrderedJson& value) { to.request.model = to.text("model", value); }},
    {"messages", In::Chat, read_messages},
    {"tools", In::Chat, read_tools},
    {"tool_choice", In::Chat, read_tool_choice},
    {"prompt", In::Completions, read_prompt},
    {"n", In::Both,
     [](FieldReader& to, const OrderedJson& value) {
       to.request.samples = to.count("n", value, 1, kMostChoices).value_or(1);
     }},
    {"temperature", In::Both,
     [](FieldReader& to, const OrderedJson& value) {
       if (!is_zero(value) && value.is_number() && value.get<double>() < kLeastTemperature)
         return to.refuse("temperature", "0 or a number from 0.0001 on", value);
       to.request.temperature = to.number("temperature", value, 0, 1e6, "0 or a number from 0.0001 on");
     }},
    {"top_p", In::Both,
     [](FieldReader& to, const OrderedJson& value) {
       to.request.top_p = to.number("top_p", value, 1e-9, 1, "a number above 0, at most 1");
     }},
    {"top_k", In::Both,
     [](FieldReader& to, const OrderedJson& value) {  // vLLM's way to say "all" is -1
       if (const auto count = to.count("top_k", value, -1, 1'000'000'000)) to.request.top_k = std::max(*count, 0);
     }},
    {"max_tokens", In::Both,
     [](FieldReader& to, const OrderedJson& value) {
       to.request.max_tokens = to.count("max_tokens", value, 1, 1'000'000'000);
     }},
    {"max_completion_tokens", In::Chat,
     [](FieldReader& to, const OrderedJson& value) {
       to.max_completion_tokens = to.count("max_completion_tokens", value, 1, 1'000'000'000);
     }},
    {"seed", In::Both,
     [](FieldReader& to, const OrderedJson& value) {
       if (const auto seed = to.integer("seed", value, INT64_MIN, INT64_MAX))
         to.request.seed = static_cast<std::uint64_t>(*seed);
     }},
    {"stop", In::Both, read_stop},
    {"logprobs", In::Chat,
     [](FieldReader& to, const OrderedJson& value) { to.wants_log_probs = to.flag("logprobs", value); }},
    {"logprobs", In::Completions,
     [](FieldReader& to, const OrderedJson& value) {
       to.request.likeliest = to.count("logprobs", value, 0, kMostLikeliest);
     }},
    {"top_logprobs", In::Chat,
     [](FieldReader& to, const OrderedJson& value) {
       to.top_log_probs = to.count("top_logprobs", value, 0, kMostLikeliest);
     }},
    {"stream", In::Both,
     [](FieldReader& to, const OrderedJson& value) { to.request.stream = to.flag("stream", value); }},
    {"stream_options", In::Both, read_stream_options},
    {"return_token_ids", In::Both,
     [](FieldReader& to, const OrderedJson& value) {
       to.request.return_token_ids = to.flag("return_token_ids", value);
     }},

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

bool is_of(const Field& field, bool chat) { return field.in == In::Both || (field.in == In::Chat) == chat; }

void check_together(FieldReader& to) {
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
  const auto json = parse_json<OrderedJson>(body, "the body", kRequestLimits);
  if (json && !json->is_object())
    return std::vector<FieldProblem>{{"", "the body: expected a JSON object, found " + std::string(json->type_name())}};
  if (!json) return std::vector<FieldProblem>{{"", json.error().message}};
  FieldReader to(chat);
  std::vector<std::string> known;
  for (const Field& field : kFields)
    if (is_of(field, chat)) known.emplace_back(field.name);
  for (const auto& [key, value] : json->items()) {
    if (value.is_null()) continue;
    bool read = false;
    for (const Field& field : kFields) {
      if (!is_of(field, chat) || key != field.name) continue;
      field.read(to, value);
      read = true;
    }
    if (!read) to.add(key.substr(0, kLongestName), unknown_field(key, known));
  }
  const char* needed = chat ? "messages" : "prompt";
  if (json_member(*json, needed).is_null()) to.add(needed, "is missing");
  check_together(to);
  if (!to.problems.empty()) return std::move(to.problems);
  return std::move(to.request);
}

}  // namespace

ReadRequest read_chat_request(std::string_view body) { return read(body, true); }
ReadRequest read_completion_request(std::string_view body) { return read(body, false); }

}  // namespace carnot
