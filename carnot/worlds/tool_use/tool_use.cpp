#include "carnot/worlds/tool_use/tool_use.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "carnot/core/base/check.h"
#include "carnot/core/base/json.h"
#include "carnot/core/base/limits.h"
#include "carnot/core/base/random.h"
#include "carnot/core/base/strings.h"
#include "carnot/core/base/utf8.h"

namespace carnot {
namespace {

constexpr double kLongestToolTime = 1e6;  ///< seconds
constexpr int kLongestOutput = 200'000;   ///< characters of a result

std::string opening_tag(const std::string& name) { return "<" + name + ">"; }
std::string closing_tag(const std::string& name) { return "</" + name + ">"; }

/// The argument that the text between tags is: the one that the tool requires, a string.
Result<std::string> tag_argument(const ToolDescription& tool) {
  CARNOT_ASSIGN_OR_RETURN(const auto schema, parse_json_object(tool.parameters, "parameters of tool " + tool.name));
  const auto required = schema.find("required");
  if (required != schema.end() && required->is_array() && required->size() == 1 && required->front().is_string()) {
    const std::string name = required->front().get<std::string>();
    const auto properties = schema.find("properties");
    if (properties != schema.end() && properties->is_object() && properties->contains(name) &&
        properties->at(name).is_object() && properties->at(name).value("type", nlohmann::json()) == "string")
      return name;
  }
  return Error{"env.tool_calls: tags: the tool " + tool.name +
               " has to require one argument, a string, which is the text between its tags"};
}

struct ToolCounts {
  int calls = 0, errors = 0;
};

class ToolUsingEnvironment final : public Environment {
 public:
  ToolUsingEnvironment(std::unique_ptr<Environment> beneath, std::shared_ptr<const ToolUse> use)
      : beneath_(std::move(beneath)), use_(std::move(use)), tools_(use_->toolbox().for_an_episode()) {}

  Protocol protocol() const override {
    Protocol protocol = beneath_->protocol();
    // Every turn with calls takes at least one, and one more turn hears that none are left.
    protocol.max_turns = std::min(kMaxEpisodeSteps, protocol.max_turns + use_->options().max_tool_calls + 1);
    if (uses_tags())
      for (const ToolDescription& tool : use_->toolbox().descriptions()) {
        protocol.stop_strings.push_back(closing_tag(tool.name));
        protocol.action_tags.push_back(tool.name);
      }
    return protocol;
  }

  Opening open() override {
    Opening opening = beneath_->open();
    offer_in(opening);
    return opening;
  }

  Reply step(const PolicyResponse& response) override {
    if (uses_tags()) return step_with_tags(response);
    if (!uses_tools(response) || was_refused_) return ask_beneath(response);
    was_refused_ = calls_left() == 0;
    if (!response.problem.empty()) return problem_reply(response.problem);
    return call_tools(response);
  }

  void score_group(std::span<Reply> last_replies) override { beneath_->score_group(last_replies); }

  std::string anchor() const override {
    const std::string key = beneath_->anchor();
    return key.empty() || counts_.calls == 0 ? key : key + " | tools " + std::to_string(used_);
  }
  const Environment& innermost() const override { return beneath_->innermost(); }
  std::vector<std::string> ground_truth() const override { return beneath_->ground_truth(); }
  std::map<std::string, std::string> info() const override { return beneath_->info(); }

  Branching branching() const override {
    const Branching beneath = beneath_->branching();
    if (beneath == Branching::Refused || use_->toolbox().memory() == ToolMemory::World) return Branching::Refused;
    return use_->toolbox().memory() == ToolMemory::Episode ? Branching::Replayed : beneath;
  }

  void redraw(std::uint64_t key) override { beneath_->redraw(key); }

  std::unique_ptr<Environment> clone() const override {
    CARNOT_CHECK(branching() == Branching::Cloned, "an environment that may be cloned");
    auto copy = std::make_unique<ToolUsingEnvironment>(beneath_->clone(), use_);
    copy->counts_ = counts_;
    copy->used_ = used_;
    copy->was_refused_ = was_refused_;
    copy->beneath_offers_ = beneath_offers_;
    return copy;
  }

 private:
  bool uses_tags() const { return use_->options().tool_calls == ToolCallStyle::Tags; }

  Reply step_with_tags(const PolicyResponse& response) {
    const auto call = use_->tagged_call(response.text);
    if (!call || was_refused_) return passed_on(beneath_->step(response));
    was_refused_ = calls_left() == 0;
    const ToolResult result = answer(*call);
    return {.text = " <result>\n" + result.text + "\n</result>",
            .form = ReplyForm::Inline,
            .valid_action = result.status != "bad_arguments",
            .tool = call->name,
            .status = result.status};
  }

  void offer_in(Opening& prompt) {
    beneath_offers_ = !prompt.tools.empty();
    if (uses_tags()) return;
    const auto& ours = use_->toolbox().descriptions();
    prompt.tools.insert(prompt.tools.end(), ours.begin(), ours.end());
  }

  bool is_ours(const ToolCall& call) const {
    const auto& ours = use_->toolbox().descriptions();
    return std::any_of(ours.begin(), ours.end(), [&](const ToolDescription& tool) { return tool.name == call.name; });
  }

  /// Calls of unknown tools count as ours where the environment beneath offers none that it could mean.
  bool uses_tools(const PolicyResponse& response) const {
    if (!response.problem.empty()) return true;
    return std::any_of(response.tool_calls.begin(), response.tool_calls.end(),
                       [&](const ToolCall& call) { return is_ours(call) || !beneath_offers_; });
  }

  int calls_left() const { return use_->options().max_tool_calls - counts_.calls; }

  Reply ask_beneath(const PolicyResponse& response) {
    PolicyResponse heard = response;
    std::erase_if(heard.tool_calls, [&](const ToolCall& call) { return is_ours(call); });
    return passed_on(beneath_->step(heard));
  }

  /// A reply of the environment beneath, with what the tools add to it.
  Reply passed_on(Reply reply) {
    if (reply.form == ReplyForm::FreshPrompt && !reply.done) offer_in(reply.prompt);
    if (reply.done) {
      reply.measures.emplace("tool_calls", counts_.calls);
      reply.measures.emplace("tool_errors", counts_.errors);
    }
    return reply;
  }

  Reply problem_reply(const std::string& problem) {
    ++counts_.calls;
    ++counts_.errors;
    used_ = derive_seed(used_, problem);
    return {.form = ReplyForm::ToolResult,
            .results = {{.text = "Error: " + problem}},
            .valid_action = false,
            .status = "bad_arguments"};
  }

  Reply call_tools(const PolicyResponse& response) {
    PolicyResponse theirs(response.text);
    for (const ToolCall& call : response.tool_calls)
      if (is_theirs(call)) theirs.tool_calls.push_back(call);
    Reply beneath;
    if (!theirs.tool_calls.empty()) {
      beneath = beneath_->step(theirs);
      const bool answers = beneath.form == ReplyForm::ToolResult && beneath.results.size() == theirs.tool_calls.size();
      if (beneath.done || !answers) return passed_on(std::move(beneath));
    }
    Reply reply{.form = ReplyForm::ToolResult,
                .reward = beneath.reward,
                .penalty = beneath.penalty,
                .valid_action = beneath.valid_action};
    auto answered = beneath.results.begin();
    for (const ToolCall& call : response.tool_calls) {
      const ToolResult result =
          is_theirs(call) ? ToolResult{.text = (answered++)->text, .status = beneath.status} : answer(call);
      if (reply.results.empty()) {
        reply.tool = call.name;
        reply.status = result.status;
      }
      reply.valid_action = reply.valid_action && result.status != "unknown_tool" && result.status != "bad_arguments";
      reply.results.push_back({.call_id = call.id, .text = result.text});
    }
    return reply;
  }

  bool is_theirs(const ToolCall& call) const { return beneath_offers_ && !is_ours(call); }

  ToolResult answer(const ToolCall& call) {
    const ToolUseOptions& options = use_->options();
    if (calls_left() <= 0)
      return {.text = "Error: no tool calls are left. Answer without them.", .status = "no_calls_left"};
    ++counts_.calls;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration_cast<Tool::Deadline::duration>(
                                                                 std::chrono::duration<double>(options.tool_timeout));
    ToolResult result = tools_.call(call.name, call.arguments, deadline);
    if (result.status != "ok" && result.status != "empty") ++counts_.errors;
    used_ = derive_seed(derive_seed(used_, call.name), call.arguments);
    result.text = cut_output(std::move(result.text), options.tool_output);
    return result;
  }

  std::unique_ptr<Environment> beneath_;
  std::shared_ptr<const ToolUse> use_;
  ToolSet tools_;
  bool beneath_offers_ = false;  // its own tools
  ToolCounts counts_{};
  std::uint64_t used_ = 0;    // what was called, in order
  bool was_refused_ = false;  // the policy has heard that no calls are left
};

}  // namespace

void ToolUseOptions::fields(FieldVisitor& visit) {
  const Limits seconds{.low = 0, .high = kLongestToolTime, .open_low = true};
  static const std::string help = "tools of every episode: " + tool_forms();
  visit.field("tools", tools, help);
  enum_field(visit, "tool_calls", tool_calls, kToolCallStyles,
             "how tools are called: as the chat format has it, or between tags with the tool's name");
  visit.field("max_tool_calls", max_tool_calls, "calls of these tools in an episode", between(1, kMaxEpisodeSteps / 2));
  visit.field("tool_timeout", tool_timeout, "seconds that a call may take before its server is replaced", seconds);
  visit.field("tool_start_timeout", tool_start_timeout, "seconds that a tool's process or server may take to start",
              seconds);
  visit.field("tool_output", tool_output, "characters of a result; the rest is cut off, with a mark",
              between(1, kLongestOutput));
  for (const auto& kind : kinds)
    if (kind) kind->fields(visit);
}

Result<std::shared_ptr<const ToolUse>> ToolUse::open(const ToolUseOptions& options) {
  if (options.tools.empty()) return std::shared_ptr<const ToolUse>(std::make_shared<ToolUse>(options, nullptr));
  CARNOT_ASSIGN_OR_RETURN(auto toolbox,
                          Toolbox::open({.tools = options.tools,
                                         .times = {.start = options.tool_start_timeout, .call = options.tool_timeout},
                                         .kinds = options.kinds}));
  std::vector<std::string> tag_arguments, problems;
  if (options.tool_calls == ToolCallStyle::Tags)
    for (const ToolDescription& tool : toolbox->descriptions()) {
      auto argument = tag_argument(tool);
      if (argument)
        tag_arguments.push_back(std::move(argument).value());
      else
        problems.push_back(argument.error().message);
    }
  if (!problems.empty()) return join_errors(problems);
  return std::shared_ptr<const ToolUse>(
      std::make_shared<ToolUse>(options, std::move(toolbox), std::move(tag_arguments)));
}

std::optional<ToolCall> ToolUse::tagged_call(std::string_view response) const {
  const std::string_view text = trim(response);
  for (std::size_t i = 0; i < tag_arguments_.size(); ++i) {
    const std::string& name = toolbox_->descriptions()[i].name;
    const std::string open = opening_tag(name), close = closing_tag(name);
    if (!text.ends_with(close)) continue;
    const std::string_view before = text.substr(0, text.size() - close.size());
    const std::size_t begin = before.rfind(open);
    if (begin == std::string_view::npos) continue;
    nlohmann::json arguments;
    arguments[tag_arguments_[i]] = std::string(trim(before.substr(begin + open.size())));
    return ToolCall{.name = name,
                    .arguments = arguments.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
  }
  return std::nullopt;
}

std::unique_ptr<Environment> ToolUse::add_to(std::unique_ptr<Environment> environment,
                                             const std::shared_ptr<const ToolUse>& tools) {
  if (!tools->toolbox_) return environment;
  return std::make_unique<ToolUsingEnvironment>(std::move(environment), tools);
}

std::string cut_output(std::string text, int longest) {
  std::size_t at = 0;
  int characters = 0;
  while (at < text.size() && characters < longest) {
    at += static_cast<std::size_t>(first_character(std::string_view(text).substr(at)).length);
    ++characters;
  }
  if (at == text.size()) return text;
  const std::size_t left = count_characters(std::string_view(text).substr(at));
  text.resize(at);
  return text + "\n[" + std::to_string(left) + " more characters are cut off]";
}

}  // namespace carnot
