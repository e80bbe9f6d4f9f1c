#include "carnot/core/env/play.h"

#include <istream>
#include <ostream>
#include <utility>
#include <vector>

#include "carnot/core/base/file.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/printable.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/env/game.h"

namespace carnot {
namespace {

std::string json_bool(bool value) { return value ? "true" : "false"; }
std::string json_number(double value) { return python_number({.value = value}); }

// One JSON object on one line, spaced as Python's json.dumps writes it.
class JsonLine {
 public:
  void add(std::string_view name, const std::string& json) {
    text_ += (text_.empty() ? "" : ", ") + json_text(name) + ": " + json;
  }
  std::string text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

// Writes the fields it is shown as a JSON object.
class JsonFields : public FieldVisitor {
 public:
  using FieldVisitor::field;
  void field(std::string_view name, bool& value, std::string_view) override { line().add(name, json_bool(value)); }
  void field(std::string_view name, std::int64_t& value, std::string_view, const Limits&) override {
    line().add(name, std::to_string(value));
  }
  void field(std::string_view name, double& value, std::string_view, const Limits&) override {
    line().add(name, json_number(value));
  }
  void field(std::string_view name, std::string& value, std::string_view, const Limits&) override {
    line().add(name, json_text(value));
  }
  void field(std::string_view name, std::vector<double>& value, std::string_view, const Limits&) override {
    line().add(name, list(value, json_number));
  }
  void field(std::string_view name, std::vector<std::string>& value, std::string_view, const Limits&) override {
    line().add(name, list(value, json_text));
  }
  void begin_section(std::string_view name, std::string_view) override { open_.push_back({std::string(name), {}}); }
  void end_section() override {
    const auto [name, inner] = std::move(open_.back());
    open_.pop_back();
    line().add(name, inner.text());
  }

  std::string text() { return line().text(); }

 private:
  template <class T, class Write>
  static std::string list(const std::vector<T>& values, Write write) {
    std::string text;
    for (const auto& value : values) text += (text.empty() ? "" : ", ") + write(value);
    return "[" + text + "]";
  }

  JsonLine& line() { return open_.back().second; }

  std::vector<std::pair<std::string, JsonLine>> open_ = {{}};
};

JsonLine opening_line(EnvironmentFactory& factory, const PlayOptions& options) {
  JsonFields config;
  factory.fields(config);
  JsonLine line;
  line.add("env", json_text(options.name));
  line.add("config", config.text());
  line.add("seed", std::to_string(options.seed));
  return line;
}

/// Calls visit(line) for each line, without a '\r' at its end, until it says that all is done.
template <class Visit>
Status for_each_line(std::istream& in, const Visit& visit) {
  std::string line;
  for (bool done = false; !done;) {
    CARNOT_ASSIGN_OR_RETURN(const auto got, read_line(in, line));
    if (!got) return Done{};
    if (line.ends_with('\r')) line.pop_back();
    done = visit(line);
  }
  return Done{};
}

void write_json(std::ostream& out, const std::string& json) { out << json << '\n' << std::flush; }
void write_text(std::ostream& out, const std::string& text) { out << printable(text) << '\n' << std::flush; }

void add_members(JsonLine& line, const std::vector<ShownMember>& members) {
  for (const ShownMember& member : members) line.add(member.name, member.json);
}

std::string step_json(const std::string& action, const GameStep& step, const std::vector<ShownMember>& members) {
  JsonLine line;
  line.add("action", json_text(action));
  line.add("observation", json_text(step.observation));
  add_members(line, members);
  line.add("reward", python_number(step.reward));
  line.add("done", json_bool(step.done));
  line.add("success", json_bool(step.success));
  line.add("effective", json_bool(step.effective));
  line.add("valid", json_bool(step.valid));
  return line.text();
}

std::string step_text(const GameStep& step) {
  return step.observation + "\nreward: " + python_number(step.reward) + "\ndone: " + json_bool(step.done) +
         "  success: " + json_bool(step.success) + "  effective: " + json_bool(step.effective) +
         "  valid: " + json_bool(step.valid);
}

Status play_bare(EnvironmentFactory& factory, const PlayOptions& options, std::istream& in, std::ostream& out) {
  CARNOT_ASSIGN_OR_RETURN(auto made, factory.make_game(options.seed));
  const auto game = std::move(made);
  if (!game) return Error{"env: '" + options.name + "' has no game beneath its conversation; add --prompt"};

  if (options.json) {
    JsonLine line = opening_line(factory, options);
    line.add("board", game->board_json());
    line.add("observation", json_text(game->observation()));
    add_members(line, game->opening_members());
    add_members(line, game->members());
    write_json(out, line.text());
  } else {
    write_text(out, game->observation());
  }
  return for_each_line(in, [&](const std::string& action) {
    const GameStep step = game->step(action);
    if (options.json) {
      write_json(out, step_json(action, step, game->members()));
    } else {
      write_text(out, step_text(step));
    }
    return step.done;
  });
}

std::string unescaped(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char next = i + 1 < line.size() ? line[i + 1] : '\0';
    if (line[i] == '\\' && (next == 'n' || next == '\\')) {
      text += next == 'n' ? '\n' : '\\';
      ++i;
    } else {
      text += line[i];
    }
  }
  return text;
}

/// What a line of input says: the call of a tool where it looks like one and there are tools, else text.
PolicyResponse response_of(const std::string& line, const Opening& opening) {
  PolicyResponse response = unescaped(line);
  const std::string_view text = trim(line);
  if (!opening.tools.empty() && text.starts_with('{') && text.find("\"name\"") != std::string_view::npos) {
    const auto call = parse_json_object(text, "the call of a tool");
    if (!call)
      response.problem = call.error().message;
    else if (const Json name = call->value("name", Json()), given = call->value("arguments", Json::object());
             name.is_string() && given.is_object())
      response.tool_calls.push_back({.name = name, .arguments = given.dump()});
    else
      response.problem = R"(expected {"name": "...", "arguments": {...}})";
  }
  if (!response.text.starts_with(opening.assistant_prefix)) response.text = opening.assistant_prefix + response.text;
  return response;
}

std::string reply_json(const std::string& response, const Reply& reply) {
  JsonLine line;
  line.add("response", json_text(response));
  line.add("text", json_text(shown_text(reply)));
  line.add("reward", json_number(reply.reward));
  line.add("penalty", json_number(reply.penalty));
  line.add("valid_action", json_bool(reply.valid_action));
  line.add("done", json_bool(reply.done));
  line.add("outcome", reply.done ? json_text(name_of(reply.outcome)) : "null");
  line.add("success", json_bool(reply.success));
  return line.text();
}

std::string heading_of(ReplyForm form) {
  switch (form) {
    case ReplyForm::Inline: return "";
    case ReplyForm::ToolResult: return "[tool]\n";
    case ReplyForm::UserMessage:
    case ReplyForm::FreshPrompt: break;
  }
  return "[user]\n";
}

std::string reply_text(const Reply& reply) {
  std::string text;
  if (!reply.done) text = heading_of(reply.form) + shown_text(reply) + "\n";
  text += "[reward " + json_number(reply.reward) + ", penalty " + json_number(reply.penalty) +
          (reply.valid_action ? "" : ", no valid action");
  if (reply.done) text += ", " + std::string(name_of(reply.outcome)) + (reply.success ? ", success" : ", no success");
  return text + "]";
}

std::string opening_text(const Opening& opening) {
  std::string text;
  if (!opening.system.empty()) text = "[system]\n" + opening.system + "\n";
  for (const ToolDescription& tool : opening.tools) text += "[tool] " + tool.json() + "\n";
  for (const Message& message : opening.history) text += "[" + message.role + "]\n" + message.content + "\n";
  if (!opening.user.empty()) text += "[user]\n" + opening.user + "\n";
  return text + "[assistant]\n" + opening.assistant_prefix;
}

Status play_prompt(EnvironmentFactory& factory, const PlayOptions& options, std::istream& in, std::ostream& out) {
  const auto environment = factory.make_instance(options.seed);
  const Opening opening = environment->open();
  if (options.json) {
    JsonLine line = opening_line(factory, options);
    line.add("system", json_text(opening.system));
    line.add("user", json_text(opening.user));
    line.add("assistant_prefix", json_text(opening.assistant_prefix));
    write_json(out, line.text());
  } else {
    write_text(out, opening_text(opening));
  }
  return for_each_line(in, [&](const std::string& line) {
    const PolicyResponse response = response_of(line, opening);
    const Reply reply = step_alone(*environment, response);
    if (options.json) {
      write_json(out, reply_json(response.text, reply));
    } else {
      write_text(out, reply_text(reply));
    }
    return reply.done;
  });
}

}  // namespace

Status play(EnvironmentFactory& factory, const PlayOptions& options, std::istream& in, std::ostream& out) {
  return options.prompt ? play_prompt(factory, options, in, out) : play_bare(factory, options, in, out);
}

}  // namespace carnot
