// Environments: worlds that make tasks, and episodes of them.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>

#include "carnot/core/base/json.h"
#include "carnot/core/config/document.h"
#include "carnot/core/config/reader.h"
#include "carnot/tools/tools.h"
#include "carnot/worlds/worlds.h"
#include "episode.h"
#include "values.h"

namespace carnot::python {
namespace {

using Record = nb::typed<nb::dict, nb::str, nb::any>;
using Records = nb::typed<nb::list, Record>;

Result<std::shared_ptr<const EnvironmentFactory>> prepared(const std::string& name,
                                                           const std::vector<std::string>& settings,
                                                           std::uint64_t seed) {
  CARNOT_ASSIGN_OR_RETURN(auto factory, make_environment_factory(name));
  CARNOT_ASSIGN_OR_RETURN(const auto document,
                          Document::parse("", "command line", {.overrides = settings, .aliases = {}}));
  ConfigReader reader(document);
  reader.read("", *factory);
  CARNOT_RETURN_IF_ERROR(reader.finish());
  CARNOT_RETURN_IF_ERROR(factory->prepare(seed));
  return std::shared_ptr<const EnvironmentFactory>(std::move(factory));
}

Split split_of(const std::string& name) {
  if (name == "train") return Split::Train;
  if (name == "validation") return Split::Validation;
  throw nb::value_error(("split: expected train or validation, found " + name).c_str());
}

/// A factory with its options, prepared.
class World {
 public:
  World(const std::string& name, const nb::dict& options, std::uint64_t seed) : name_(name) {
    const auto settings = settings_of(options);
    factory_ = value_or_raise([&] {
      const nb::gil_scoped_release others_may_run;
      return prepared(name, settings, seed);
    }());
  }

  const std::string& name() const { return name_; }

  std::unique_ptr<Episode> make(const std::string& split, std::int64_t index) const {
    if (index < 0) throw nb::value_error("index: expected at least 0");
    const Split chosen = split_of(split);
    return started([chosen, index, factory = factory_] { return factory->make(chosen, index); });
  }

  std::unique_ptr<Episode> instance(std::uint64_t seed) const {
    return started([seed, factory = factory_] { return factory->make_instance(seed); });
  }

  std::optional<std::int64_t> num_tasks(const std::string& split) const {
    const bool of_training = split_of(split) == Split::Train;
    const std::int64_t count = of_training ? factory_->num_training_tasks() : factory_->num_validation_tasks();
    return count == 0 ? std::nullopt : std::optional(count);
  }

 private:
  static std::unique_ptr<Episode> started(Episode::Make make) {
    const nb::gil_scoped_release others_may_run;
    return std::make_unique<Episode>(std::move(make));
  }

  std::string name_;
  std::shared_ptr<const EnvironmentFactory> factory_;
};

std::unique_ptr<Episode> make_environment(const std::string& name, const nb::dict& options, std::uint64_t seed,
                                          const std::string& split, std::int64_t index) {
  return World(name, options, seed).make(split, index);
}

std::vector<ToolCall> calls_of(const nb::sequence& calls) {
  std::vector<ToolCall> result;
  for (const nb::handle call : nb::iter(calls)) {
    const std::string where = "tool_calls[" + std::to_string(result.size()) + "]";
    const Json json = json_of(call, where);
    const bool named = json.is_object() && json.contains("name") && json["name"].is_string();
    if (!named) throw nb::value_error((where + ": expected a dict with a name and arguments").c_str());
    const Json arguments = json.value("arguments", Json::object());
    const Json id = json.value("id", Json(""));
    result.push_back({.name = json["name"],
                      .arguments = arguments.is_string() ? arguments.get<std::string>() : arguments.dump(),
                      .id = id.is_string() ? id.get<std::string>() : ""});
  }
  return result;
}

Reply step(Episode& episode, const std::string& text, const nb::sequence& tool_calls) {
  PolicyResponse response(text);
  response.tool_calls = calls_of(tool_calls);
  return value_or_raise([&] {
    const nb::gil_scoped_release others_may_run;
    return episode.step(std::move(response));
  }());
}

Opening open(Episode& episode) {
  return value_or_raise([&] {
    const nb::gil_scoped_release others_may_run;
    return episode.open();
  }());
}

std::unique_ptr<Episode> clone(Episode& episode) {
  return value_or_raise([&] {
    const nb::gil_scoped_release others_may_run;
    return episode.clone();
  }());
}

Record message(const std::string& role, const std::string& content) {
  Record result;
  result["role"] = role;
  result["content"] = content;
  return result;
}

Record message_of(const Message& given) {
  Record result = message(given.role, given.content);
  if (!given.tool_call_id.empty()) result["tool_call_id"] = given.tool_call_id;
  Records calls;
  for (const ToolCall& call : given.tool_calls) {
    Record function;
    function["name"] = call.name;
    function["arguments"] = call.arguments;
    Record one;
    one["id"] = call.id;
    one["type"] = "function";
    one["function"] = function;
    calls.append(one);
  }
  if (!given.tool_calls.empty()) result["tool_calls"] = calls;
  return result;
}

Records messages_of(const Opening& opening) {
  Records messages;
  if (!opening.system.empty()) messages.append(message("system", opening.system));
  for (const Message& one : opening.history) messages.append(message_of(one));
  if (!opening.user.empty()) messages.append(message("user", opening.user));
  return messages;
}

Records messages_of_reply(const Reply& reply) {
  Records messages;
  if (reply.done) return messages;
  if (reply.form == ReplyForm::FreshPrompt) return messages_of(reply.prompt);
  if (reply.form != ReplyForm::ToolResult) messages.append(message("user", reply.text));
  for (const ToolMessage& result : reply.results)
    messages.append(message_of({.role = "tool", .content = result.text, .tool_call_id = result.call_id}));
  return messages;
}

Records tools_of(const Opening& opening) {
  const nb::object loads = nb::module_::import_("json").attr("loads");
  Records tools;
  for (const ToolDescription& tool : opening.tools) tools.append(loads(tool.json()));
  return tools;
}

std::string form_of(const Reply& reply) {
  switch (reply.form) {
    case ReplyForm::UserMessage: return "user_message";
    case ReplyForm::Inline: return "inline";
    case ReplyForm::ToolResult: return "tool_result";
    case ReplyForm::FreshPrompt: return "fresh_prompt";
  }
  return "";
}

std::optional<std::string> outcome_of(const Reply& reply) {
  return reply.done ? std::optional<std::string>(name_of(reply.outcome)) : std::nullopt;
}

/// The environments that this module has, with what each is in one line.
std::map<std::string, std::string> summaries() {
  std::map<std::string, std::string> result;
  for (const EnvironmentEntry& entry : environments()) result.emplace(entry.name, entry.summary);
  return result;
}

void offer_own_worlds() {
  offer_worlds();
  static std::vector<EnvironmentEntry> table;
  for (const EnvironmentEntry& entry : environments())
    if (entry.make != nullptr) table.push_back(entry);
  offer_environments(table);
  offer_tools();
}

void bind_opening(nb::module_& module) {
  nb::class_<Opening>(module, "Opening", "How a conversation opens.")
      .def_prop_ro("messages", messages_of, "as chat templates and OpenAI's API take them")
      .def_prop_ro("tools", tools_of, "JSON schemas of the functions that the policy may call, in OpenAI's form")
      .def_ro("system", &Opening::system, "may be empty")
      .def_ro("user", &Opening::user)
      .def_ro("assistant_prefix", &Opening::assistant_prefix,
              "every response starts with it; step() adds it where it is missing");
}

void bind_reply(nb::module_& module) {
  nb::class_<Reply>(module, "Reply", "What an environment answers to one response.")
      .def_prop_ro("observation", shown_text, "what the policy is shown; empty at the end")
      .def_prop_ro("messages", messages_of_reply,
                   "the messages to append, none at the end; the whole prompt where `form` is fresh_prompt")
      .def_prop_ro("form", form_of,
                   "user_message; tool_result; inline: the text continues the assistant's message; fresh_prompt: "
                   "`messages` replace all earlier ones")
      .def_ro("reward", &Reply::reward)
      .def_ro("penalty", &Reply::penalty, "at most 0; learned from, but no part of a score")
      .def_ro("valid_action", &Reply::valid_action)
      .def_ro("done", &Reply::done)
      .def_prop_ro("outcome", outcome_of,
                   "None before the end; finished, out_of_turns, out_of_tokens, unparsable, tool_failed, or "
                   "infra_failed: what failed was not the policy, and the reward says nothing")
      .def_prop_ro("success", [](const Reply& reply) { return reply.done && reply.success; })
      .def_ro("tool", &Reply::tool, "the first that the response called")
      .def_ro("status", &Reply::status, "of the tool's result")
      .def_ro("measures", &Reply::measures, "numbers for metrics, at the end")
      .def_ro("answer", &Reply::answer, "the final answer, at the end");
}

constexpr const char* kEnvironmentHelp =
    "One episode of one task. Calls may come from any thread; those of one episode run one after the other.";
constexpr const char* kStepHelp =
    R"(Answers a response. `tool_calls` are dicts of name, arguments (a dict or JSON text) and, where the format has
one, id. Releases the interpreter's lock.)";

void bind_episode(nb::module_& module) {
  nb::class_<Episode>(module, "Environment", kEnvironmentHelp)
      .def("open", open, "The prompt; the same one each time.")
      .def("step", step, nb::arg("text"), nb::arg("tool_calls") = nb::tuple(), kStepHelp,
           nb::sig("def step(self, text: str, tool_calls: collections.abc.Sequence[dict[str, object]] = ()) -> Reply"))
      .def("clone", clone, "An independent copy at the present state. ValueError where can_clone is false.")
      .def_prop_ro("can_clone", &Episode::can_clone)
      .def_prop_ro("anchor", &Episode::anchor, "equal for equal states of one task; empty if there is no such key")
      .def_prop_ro("ground_truth", &Episode::ground_truth)
      .def_prop_ro("info", &Episode::info, "about the task")
      .def_prop_ro("max_turns", [](const Episode& episode) { return episode.protocol().max_turns; })
      .def_prop_ro("max_response_tokens", [](const Episode& episode) { return episode.protocol().max_response_tokens; })
      .def_prop_ro(
          "stop_strings", [](const Episode& episode) { return episode.protocol().stop_strings; },
          "each ends a response early and stays part of it");
}

}  // namespace

void bind_environments(nb::module_& module) {
  offer_own_worlds();
  bind_opening(module);
  bind_reply(module);
  bind_episode(module);
  const auto name = nb::arg("name");
  const auto split = nb::arg("split") = "train";
  nb::class_<World>(module, "World", "An environment with its options and data, which all of its tasks share.")
      .def(nb::init<const std::string&, const nb::dict&, std::uint64_t>(), name, nb::arg("options") = nb::dict(),
           nb::arg("seed") = 0,
           nb::sig("def __init__(self, name: str, options: dict[str, object] = {}, seed: int = 0) -> None"),
           "`options` are those of a recipe's `env` section, `seed` is the recipe's.")
      .def_prop_ro("name", &World::name)
      .def("make", &World::make, split, nb::arg("index") = 0,
           "Task `index` of a split (train or validation), the same each time.")
      .def("instance", &World::instance, nb::arg("seed"), "The task that `carnot env --seed` plays.")
      .def("num_tasks", &World::num_tasks, split, "None if tasks never run out.");
  module.def("make_environment", make_environment, name, nb::arg("options") = nb::dict(), nb::arg("seed") = 0, split,
             nb::arg("index") = 0, "World(name, options, seed).make(split, index)",
             nb::sig("def make_environment(name: str, options: dict[str, object] = {}, seed: int = 0, "
                     "split: str = 'train', index: int = 0) -> Environment"));
  module.def("environments", summaries, "Every environment, with what it is in one line.");
}

}  // namespace carnot::python
