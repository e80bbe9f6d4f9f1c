#include "carnot/worlds/process/messages.h"

#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/subprocess/answer_reader.h"

namespace carnot {
namespace {

/// The JSON value that `text` is, or else the text itself: size=4 is a number, colour=red a string.
Json value_of(const std::string& text) {
  auto parsed = parse_json(text, "");
  return parsed ? std::move(parsed).value() : Json(text);
}

void read_tool_call(AnswerReader& reader, ToolCall& call) {
  reader.text("name", call.name);
  if (const std::string arguments = reader.json("arguments"); !arguments.empty()) call.arguments = arguments;
  reader.text("id", call.id);
}

void read_message(AnswerReader& reader, Message& message) {
  std::size_t role = 1;
  constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};
  reader.word("role", role, {std::begin(kRoles), std::end(kRoles)});
  message.role = kRoles[role];
  reader.text("content", message.content);
  reader.objects("tool_calls", [&](AnswerReader& call) { read_tool_call(call, message.tool_calls.emplace_back()); });
  reader.text("tool_call_id", message.tool_call_id);
}

void read_tool(AnswerReader& reader, ToolDescription& tool) {
  reader.text("name", tool.name);
  reader.text("description", tool.description);
  if (const std::string schema = reader.json("parameters"); !schema.empty()) tool.parameters = schema;
  if (const Status status = tool.check(); !status) reader.refuse("name", status.error().message);
}

void read_prompt(AnswerReader& reader, Opening& opening) {
  reader.text("system", opening.system);
  reader.objects("history", [&](AnswerReader& one) { read_message(one, opening.history.emplace_back()); });
  reader.text("user", opening.user);
  reader.text("assistant_prefix", opening.assistant_prefix);
  reader.objects("tools", [&](AnswerReader& one) { read_tool(one, opening.tools.emplace_back()); });
  if (opening.user.empty() && opening.history.empty()) reader.refuse("user", "a string, or a history");
}

/// Which of the four forms a reply has follows from what it holds.
void read_form(AnswerReader& reader, Reply& reply) {
  bool is_inline = false;
  reader.flag("inline", is_inline);
  const int forms = (is_inline ? 1 : 0) + (reader.has("results") ? 1 : 0) + (reader.has("prompt") ? 1 : 0);
  if (forms > 1) reader.refuse("prompt", "only one of inline, results and prompt");
  if (is_inline) reply.form = ReplyForm::Inline;
  if (reader.has("results")) reply.form = ReplyForm::ToolResult;
  if (reader.has("prompt")) reply.form = ReplyForm::FreshPrompt;
  reader.objects("results", [&](AnswerReader& one) {
    ToolMessage& result = reply.results.emplace_back();
    one.text("call_id", result.call_id);
    one.text("text", result.text);
  });
  reader.object("prompt", [&](AnswerReader& prompt) { read_prompt(prompt, reply.prompt); });
}

Json calls_json(const std::vector<ToolCall>& calls) {
  Json list = Json::array();
  for (const ToolCall& call : calls)
    list.push_back({{"name", call.name}, {"arguments", value_of(call.arguments)}, {"id", call.id}});
  return list;
}

}  // namespace

Result<Json> hello_request(const std::vector<std::string>& settings) {
  Json values = Json::object();
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Error{"env.settings: expected key=value, found \"" + setting + "\""};
    values[setting.substr(0, equals)] = value_of(setting.substr(equals + 1));
  }
  return Json{{"op", "hello"}, {"protocol", kProcessProtocol}, {"settings", std::move(values)}};
}

Json reset_request(std::int64_t episode, Split split, std::int64_t task, std::uint64_t seed) {
  return {{"op", "reset"},
          {"episode", episode},
          {"split", split == Split::Train ? "train" : "validation"},
          {"task", task},
          {"seed", seed}};
}

Json step_request(std::int64_t episode, const PolicyResponse& response) {
  Json request{{"op", "step"}, {"episode", episode}, {"text", response.text}};
  if (!response.tool_calls.empty()) request["tool_calls"] = calls_json(response.tool_calls);
  if (!response.problem.empty()) request["problem"] = response.problem;
  return request;
}

Json clone_request(std::int64_t episode, std::int64_t copy) {
  return {{"op", "clone"}, {"episode", episode}, {"copy", copy}};
}

Json demonstrate_request(std::int64_t episode, std::string_view observation, double progress) {
  return {{"op", "demonstrate"}, {"episode", episode}, {"observation", observation}, {"progress", progress}};
}

Json close_notice(std::int64_t episode) { return {{"op", "close"}, {"episode", episode}}; }

ProcessGreeting read_greeting(const PeerAnswer& answer) {
  AnswerReader reader(answer);
  ProcessGreeting greeting;
  int protocol = 0;
  reader.count("protocol", protocol, kProcessProtocol, kProcessProtocol);
  if (!reader.has("protocol")) reader.refuse("protocol", std::to_string(kProcessProtocol));
  reader.text("name", greeting.name);
  reader.flag("batch", greeting.batch);
  reader.flag("clone", greeting.clone);
  reader.flag("replay", greeting.replay);
  reader.flag("demonstrate", greeting.demonstrate);
  reader.count("max_turns", greeting.protocol.max_turns, 1, kMaxEpisodeSteps);
  reader.count("max_response_tokens", greeting.protocol.max_response_tokens, 1, kMaxResponseTokens);
  reader.texts("stop", greeting.protocol.stop_strings);
  for (const std::string& stop : greeting.protocol.stop_strings)
    if (stop.empty()) reader.refuse("stop", "texts that are not empty");
  reader.text("think_tag", greeting.protocol.think_tag);
  reader.texts("action_tags", greeting.protocol.action_tags);
  reader.text("answer_lead", greeting.answer_lead);
  reader.object("tokenizer", [&](AnswerReader& tokenizer) {
    tokenizer.texts("texts", greeting.tokenizer_texts);
    tokenizer.texts("words", greeting.tokenizer_words);
    tokenizer.texts("added_tokens", greeting.tokenizer_added_tokens);
  });
  reader.finish();
  return greeting;
}

ProcessOpening read_opening(const PeerAnswer& answer) {
  AnswerReader reader(answer);
  ProcessOpening out;
  read_prompt(reader, out.opening);
  reader.texts("ground_truth", out.ground_truth);
  reader.text_map("info", out.info);
  reader.text("anchor", out.anchor);
  reader.finish();
  return out;
}

ProcessReply read_reply(const PeerAnswer& answer) {
  AnswerReader reader(answer);
  ProcessReply out;
  Reply& reply = out.reply;
  reader.text("text", reply.text);
  read_form(reader, reply);
  reader.number("reward", reply.reward);
  reader.number("penalty", reply.penalty);
  reader.flag("valid_action", reply.valid_action);
  reader.flag("done", reply.done);
  // What the machinery breaks is said with `error`, not here.
  std::size_t outcome = 0;
  reader.word("outcome", outcome, {std::begin(kOutcomeNames), std::begin(kOutcomeNames) + 5});
  reply.outcome = static_cast<Outcome>(outcome);
  reader.flag("success", reply.success);
  reader.text("tool", reply.tool);
  reader.text("status", reply.status);
  reader.numbers("measures", reply.measures);
  if (reader.has("answer")) reader.text("answer", reply.answer.emplace());
  reader.text("anchor", out.anchor);
  reader.finish();
  return out;
}

PolicyResponse read_demonstration(const PeerAnswer& answer) {
  AnswerReader reader(answer);
  PolicyResponse response;
  reader.text("text", response.text);
  reader.objects("tool_calls", [&](AnswerReader& call) { read_tool_call(call, response.tool_calls.emplace_back()); });
  reader.finish();
  return response;
}

void read_empty(const PeerAnswer& answer) { AnswerReader(answer).finish(); }

}  // namespace carnot
