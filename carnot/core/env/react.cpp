#include "carnot/core/env/react.h"

#include <algorithm>
#include <cctype>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"
#include "carnot/core/env/plain_view.h"

namespace carnot {
namespace {

constexpr std::string_view kReactFinish = "finish";
constexpr std::string_view kObservation = "Observation:";
constexpr std::string_view kReactForm =
    "Solve the task step by step. In each step write a thought and one action, in this form, and then stop:\n"
    "Thought: what you know and what to do next\n"
    "Action: the action\n"
    "You are then told the observation that the action leads to.\n\nActions:\n";

/// Where a line begins with `label`, maybe a number, and a colon: the place of the label and the one behind the colon.
struct LabelPlace {
  std::size_t begin = std::string_view::npos;
  std::size_t end = std::string_view::npos;
};

LabelPlace find_label(std::string_view text, std::string_view label) {
  for (std::size_t at = text.find(label); at != std::string_view::npos; at = text.find(label, at + 1)) {
    std::size_t before = at;
    while (before > 0 && (text[before - 1] == ' ' || text[before - 1] == '*')) --before;
    if (before > 0 && text[before - 1] != '\n') continue;
    std::size_t end = at + label.size();
    while (end < text.size() &&
           (text[end] == ' ' || text[end] == '*' || std::isdigit(static_cast<unsigned char>(text[end]))))
      ++end;
    if (end < text.size() && text[end] == ':') return {.begin = before, .end = end + 1};
  }
  return {};
}

/// Blanks, and the stars that make a label bold.
std::string_view without_stars(std::string_view text) {
  text = stripped(text);
  while (text.starts_with('*')) text = stripped(text.substr(1));
  return text;
}

bool is_react_name(std::string_view name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

ReactStep react_step(std::string_view thought, std::string_view action) {
  ReactStep step{.thought = std::string(thought)};
  action = without_stars(action);
  const std::size_t open = action.find('['), close = action.rfind(']');
  const std::string_view name = open == std::string_view::npos ? "" : stripped(action.substr(0, open));
  if (is_react_name(name) && close != std::string_view::npos && close > open) {
    step.name = name;
    step.argument = stripped(action.substr(open + 1, close - open - 1));
    step.action = action.substr(0, close + 1);
  } else {
    step.action = stripped(action.substr(0, action.find('\n')));
  }
  return step;
}

/// A result without the tags around it: " <result>\nx\n</result>" is "x".
std::string_view without_outer_tags(std::string_view text) {
  text = stripped(text);
  if (!text.starts_with('<')) return text;
  const std::size_t end = text.find('>');
  if (end == std::string_view::npos) return text;
  const std::string close = "</" + std::string(text.substr(1, end - 1)) + ">";
  if (!text.ends_with(close) || text.size() < end + 1 + close.size()) return text;
  return stripped(text.substr(end + 1, text.size() - end - 1 - close.size()));
}

/// The name and the type of the argument that plain text can be: the one that the tool requires, or its only one.
struct OnlyArgument {
  std::string name{};
  std::string type{};
};

std::optional<OnlyArgument> only_argument(const ToolDescription& tool) {
  const auto schema = parse_json_object(tool.parameters, tool.name);
  if (!schema) return std::nullopt;
  const auto properties = schema->find("properties");
  if (properties == schema->end() || !properties->is_object() || properties->empty()) return std::nullopt;
  std::string name;
  const auto required = schema->find("required");
  if (required != schema->end() && required->is_array() && required->size() == 1 && required->front().is_string())
    name = required->front().get<std::string>();
  else if (properties->size() == 1)
    name = properties->begin().key();
  const auto property = properties->find(name);
  if (property == properties->end() || !property->is_object()) return std::nullopt;
  const auto type = property->find("type");
  return OnlyArgument{.name = name,
                      .type = type != property->end() && type->is_string() ? type->get<std::string>() : "string"};
}

std::string tool_arguments(const ToolDescription& tool, const std::string& text) {
  if (const auto object = parse_json_object(text, "arguments")) return text;
  const auto only = only_argument(tool);
  if (!only) return text.empty() ? "{}" : text;
  Json value = text;
  if (only->type != "string")
    if (auto parsed = parse_json(text, "argument")) value = std::move(parsed).value();
  return json_line(Json{{only->name, value}});
}

class ReactEnvironment final : public Environment {
 public:
  ReactEnvironment(std::unique_ptr<Environment> beneath, std::string answer_lead)
      : beneath_(std::move(beneath)), answer_lead_(std::move(answer_lead)), protocol_(beneath_->protocol()) {}

  Protocol protocol() const override {
    return {.stop_strings = {std::string(kObservation)},
            .think_tag = "",
            .action_tags = {},
            .max_turns = protocol_.max_turns,
            .max_response_tokens = protocol_.max_response_tokens};
  }

  Opening open() override {
    const Opening opening = beneath_->open();
    tools_ = opening.tools;
    const PlainView view = view_now();
    if (view.actions.empty()) return {.system = std::string(kReactForm) + action_list(), .user = asked(opening)};
    acts_plainly_ = true;
    return {.system = std::string(kReactForm) + view.actions,
            .user = view.task + "\n" + std::string(kObservation) + " " + view.observation};
  }

  Reply step(const PolicyResponse& response) override {
    CARNOT_CHECK(!done_, "the episode is over");
    ++turns_;
    const auto said = parse_react(response.text);
    if (!said) return refuse("There is no line \"Action: ...\" in the answer.");
    const auto passed = response_of(*said);
    if (!passed) return refuse(passed.error().message);
    return shown(beneath_->step(*passed));
  }

  void score_group(std::span<Reply> last_replies) override { beneath_->score_group(last_replies); }

  std::string anchor() const override { return beneath_->anchor(); }
  std::vector<std::string> ground_truth() const override { return beneath_->ground_truth(); }
  std::map<std::string, std::string> info() const override { return beneath_->info(); }
  Branching branching() const override { return beneath_->branching(); }

  void redraw(std::uint64_t key) override { beneath_->redraw(key); }

  std::unique_ptr<Environment> clone() const override {
    auto copy = std::make_unique<ReactEnvironment>(beneath_->clone(), answer_lead_);
    copy->tools_ = tools_;
    copy->acts_plainly_ = acts_plainly_;
    copy->turns_ = turns_;
    copy->refused_ = refused_;
    copy->done_ = done_;
    return copy;
  }

 private:
  /// Empty if the environment has no such view.
  PlainView view_now() const {
    const auto* plain = dynamic_cast<const PlainlyShown*>(&beneath_->innermost());
    return plain == nullptr ? PlainView() : plain->plain_view();
  }

  /// The question alone where the environment tells it; else all that its opening says.
  std::string asked(const Opening& opening) const {
    const auto info = beneath_->info();
    if (const auto question = info.find("question"); question != info.end()) return question->second;
    std::string text = opening.system;
    const auto add = [&](const std::string& part) { text += (text.empty() || part.empty() ? "" : "\n\n") + part; };
    for (const Message& message : opening.history) add(message.content);
    add(opening.user);
    return text;
  }

  /// Tags that the environment reads, without that of the answer where there are others.
  std::vector<std::string> called_tags() const {
    std::vector<std::string> tags;
    for (const std::string& tag : protocol_.action_tags)
      if (tag != "answer") tags.push_back(tag);
    return tags;
  }

  bool has_own_actions() const { return tools_.empty() && protocol_.action_tags.size() == 1 && answer_lead_.empty(); }

  std::string action_list() const {
    if (has_own_actions()) return "what the task asks for, without any tags";
    std::string list;
    for (const ToolDescription& tool : tools_) {
      const auto only = only_argument(tool);
      list += tool.name + "[" + (only ? only->name : "arguments as JSON") + "]: " + tool.description + "\n";
    }
    for (const std::string& tag : called_tags())
      list += tag + (tag == "search" ? "[query]: finds passages for a query\n" : "[text]\n");
    return list + "Finish[answer]: ends the task with the answer, and nothing else in the brackets";
  }

  std::string thought_of(const ReactStep& said) const {
    if (protocol_.think_tag.empty()) return "";
    return "<" + protocol_.think_tag + ">" + said.thought + "</" + protocol_.think_tag + ">";
  }

  static std::string in_tag(const std::string& tag, const std::string& text) {
    return "<" + tag + ">" + text + "</" + tag + ">";
  }

  Result<PolicyResponse> response_of(const ReactStep& said) const {
    const std::string name = lower_case(said.name);
    const auto own_action = [&] {
      return PolicyResponse(thought_of(said) + in_tag(protocol_.action_tags.front(), said.action));
    };
    if (acts_plainly_) return own_action();
    if (name == kReactFinish) return PolicyResponse(thought_of(said) + final_answer(said.argument));
    for (const ToolDescription& tool : tools_) {
      if (lower_case(tool.name) != name) continue;
      PolicyResponse response(said.thought);
      response.tool_calls.push_back({.name = tool.name, .arguments = tool_arguments(tool, said.argument)});
      return response;
    }
    for (const std::string& tag : called_tags())
      if (lower_case(tag) == name && !has_own_actions())
        return PolicyResponse(thought_of(said) + in_tag(tag, said.argument));
    if (has_own_actions()) return own_action();
    return Error{"There is no such action. Actions:\n" + action_list()};
  }

  std::string final_answer(const std::string& answer) const {
    if (answer_lead_.empty())
      return protocol_.action_tags.size() == 1 ? in_tag(protocol_.action_tags.front(), answer) : answer;
    std::string text = answer_lead_ + answer;
    if (answer_lead_.ends_with('{')) text += "}";
    if (answer_lead_.find("<answer>") != std::string::npos) text += " </answer>";
    return text;
  }

  Reply shown(Reply reply) {
    done_ = reply.done;
    if (reply.done) {
      reply.measures["unreadable_steps"] = refused_;
      return reply;
    }
    std::string seen = view_now().observation;
    if (seen.empty()) seen = without_outer_tags(shown_text(reply));
    if (!reply.valid_action) seen = "That is not a valid action. " + seen;
    reply.form = ReplyForm::UserMessage;
    reply.results.clear();
    reply.prompt = {};
    reply.text = std::string(kObservation) + " " + seen;
    return reply;
  }

  Reply refuse(const std::string& why) {
    ++refused_;
    Reply reply{.text = std::string(kObservation) + " " + why, .valid_action = false};
    if (turns_ < protocol_.max_turns) return reply;
    done_ = true;
    reply.done = true;
    reply.outcome = Outcome::OutOfTurns;
    reply.measures["unreadable_steps"] = refused_;
    return reply;
  }

  std::unique_ptr<Environment> beneath_;
  std::string answer_lead_;
  Protocol protocol_;  // of the environment beneath
  std::vector<ToolDescription> tools_{};
  bool acts_plainly_ = false;  // PlainView::actions are its actions
  int turns_ = 0;
  int refused_ = 0;
  bool done_ = false;
};

class ReactFactory final : public EnvironmentFactory {
 public:
  ReactFactory(std::unique_ptr<EnvironmentFactory> beneath, std::string answer_lead)
      : beneath_(std::move(beneath)), answer_lead_(std::move(answer_lead)) {}

  void fields(FieldVisitor& visit) override { beneath_->fields(visit); }
  Status prepare(std::uint64_t) override { return Done{}; }
  std::unique_ptr<Environment> make(Split split, std::int64_t index) const override {
    return make_react(beneath_->make(split, index), answer_lead_);
  }
  std::int64_t num_training_tasks() const override { return beneath_->num_training_tasks(); }
  std::int64_t num_validation_tasks() const override { return beneath_->num_validation_tasks(); }
  std::unique_ptr<Environment> make_instance(std::uint64_t seed) const override {
    return make_react(beneath_->make_instance(seed), answer_lead_);
  }

 private:
  std::unique_ptr<EnvironmentFactory> beneath_;
  std::string answer_lead_;
};

}  // namespace

std::optional<ReactStep> parse_react(std::string_view text) {
  constexpr std::string_view kThoughtsEnd = "</think>";
  if (const std::size_t at = text.rfind(kThoughtsEnd); at != std::string_view::npos)
    text.remove_prefix(at + kThoughtsEnd.size());
  text = stripped(text);
  const LabelPlace action = find_label(text, "Action");
  if (action.begin == std::string_view::npos) return std::nullopt;
  std::string_view said = text.substr(action.end);
  for (const std::string_view next : {"Observation", "Thought", "Action"})
    said = said.substr(0, std::min(find_label(said, next).begin, said.size()));
  std::string_view thought = text.substr(0, action.begin);
  if (const LabelPlace label = find_label(thought, "Thought"); label.end != std::string_view::npos)
    thought = thought.substr(label.end);
  ReactStep step = react_step(without_stars(thought), said);
  if (step.action.empty()) return std::nullopt;
  return step;
}

std::unique_ptr<Environment> make_react(std::unique_ptr<Environment> environment, const std::string& answer_lead) {
  return std::make_unique<ReactEnvironment>(std::move(environment), answer_lead);
}

std::unique_ptr<EnvironmentFactory> make_react_factory(std::unique_ptr<EnvironmentFactory> beneath,
                                                       const std::string& answer_lead) {
  return std::make_unique<ReactFactory>(std::move(beneath), answer_lead);
}

}  // namespace carnot
