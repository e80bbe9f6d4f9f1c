#include "carnot/core/env/environment_boundary.h"

#include <bit>
#include <set>
#include <sstream>

#include "carnot/core/base/json.h"

namespace carnot {
namespace {

std::uint64_t mixed(std::uint64_t key, const Opening& prompt) {
  key = derive_seed(derive_seed(key, prompt.system), prompt.user);
  for (const Message& message : prompt.history) key = derive_seed(derive_seed(key, message.role), message.content);
  return derive_seed(key, prompt.assistant_prefix);
}

/// Collects what is wrong, and throws it all at once.
class Problems {
 public:
  void add(const std::string& field, const std::string& what) {
    text_ += (text_.empty() ? "" : "; ") + field + " " + what;
  }

  void expect_text(const std::string& field, const std::string& text) {
    if (text.size() > kLongestTextBytes)
      add(field,
          "has " + std::to_string(text.size()) + " bytes; expected at most " + std::to_string(kLongestTextBytes));
  }

  /// Texts of a list, none of them empty.
  void expect_texts(const std::string& field, const std::vector<std::string>& texts) {
    expect_count(field, texts.size());
    for (const std::string& text : texts) {
      if (text.empty()) return add(field, "holds an empty text");
      if (text.size() > kLongestTextBytes) return expect_text(field, text);
    }
  }

  void expect_count(const std::string& field, std::size_t count) {
    if (count > kMostEntries)
      add(field, "has " + std::to_string(count) + " entries; expected at most " + std::to_string(kMostEntries));
  }

  void expect_number(const std::string& field, double value, double highest = kLargestReward) {
    if (value >= -kLargestReward && value <= highest) return;  // not so for NaN
    std::ostringstream out;
    out << "is " << value << "; expected a number from " << -kLargestReward << " to " << highest;
    add(field, out.str());
  }

  void expect_prompt(const std::string& field, const Opening& prompt) {
    expect_text(field + ".system", prompt.system);
    expect_text(field + ".user", prompt.user);
    expect_text(field + ".assistant_prefix", prompt.assistant_prefix);
    expect_count(field + ".history", prompt.history.size());
    if (prompt.user.empty() && prompt.history.empty()) add(field, "says nothing; expected user or history");
    for (const Message& message : prompt.history) expect_message(field + ".history", message);
    std::set<std::string> names;
    for (const ToolDescription& tool : prompt.tools) {
      if (const Status right = tool.check(); !right) add(field + ".tools", right.error().message);
      if (!names.insert(tool.name).second) add(field + ".tools", "has " + tool.name + " twice");
    }
  }

  void expect_message(const std::string& field, const Message& message) {
    const std::string& role = message.role;
    if (role != "user" && role != "assistant" && role != "tool")
      add(field, "has role \"" + role + "\"; expected user, assistant or tool");
    expect_text(field, message.content);
    for (const ToolCall& call : message.tool_calls)
      if (!parse_json_object(call.arguments, "arguments")) add(field, "calls " + call.name + " without a JSON object");
  }

  void expect_positive(const std::string& field, int value) {
    if (value < 1) add(field, "is " + std::to_string(value) + "; expected at least 1");
  }

  void raise() const {
    if (!text_.empty()) throw EnvironmentFailure(text_);
  }

 private:
  std::string text_;
};

}  // namespace

std::uint64_t key_of(const Reply& reply) {
  std::uint64_t key = derive_seed(static_cast<std::uint64_t>(reply.form), reply.text, reply.done ? 1 : 0);
  for (const ToolMessage& result : reply.results) key = derive_seed(key, result.text);
  key = derive_seed(key, "reward", std::bit_cast<std::uint64_t>(reply.reward));
  return reply.form == ReplyForm::FreshPrompt ? mixed(key, reply.prompt) : key;
}

std::unique_ptr<Environment> replay(const std::function<std::unique_ptr<Environment>()>& make,
                                    std::span<const PlayedTurn> turns) {
  auto environment = make();
  if (!environment) throw EnvironmentFailure("the factory made no environment");
  environment->open();
  for (std::size_t k = 0; k < turns.size(); ++k) {
    const Reply reply = environment->step(turns[k].response);
    check_reply(reply);
    if (key_of(reply) != turns[k].reply_key)
      throw EnvironmentFailure("played again, turn " + std::to_string(k) +
                               " is answered otherwise: this environment cannot be replayed");
  }
  return environment;
}

void check_protocol(const Protocol& protocol) {
  Problems problems;
  problems.expect_texts("protocol.stop_strings", protocol.stop_strings);
  problems.expect_text("protocol.think_tag", protocol.think_tag);
  problems.expect_texts("protocol.action_tags", protocol.action_tags);
  problems.expect_positive("protocol.max_turns", protocol.max_turns);
  problems.expect_positive("protocol.max_response_tokens", protocol.max_response_tokens);
  problems.raise();
}

void check_opening(const Opening& opening) {
  Problems problems;
  problems.expect_prompt("opening", opening);
  problems.raise();
}

void check_reply(const Reply& reply) {
  Problems problems;
  problems.expect_number("reply.reward", reply.reward);
  problems.expect_number("reply.penalty", reply.penalty, 0);
  problems.expect_text("reply.text", reply.text);
  problems.expect_text("reply.tool", reply.tool);
  problems.expect_text("reply.status", reply.status);
  if (!reply.done && reply.form == ReplyForm::ToolResult) {
    problems.expect_count("reply.results", reply.results.size());
    if (reply.results.empty()) problems.add("reply.results", "is empty; expected one per call");
    for (const ToolMessage& result : reply.results) problems.expect_text("reply.results", result.text);
  }
  if (!reply.done && reply.form == ReplyForm::FreshPrompt) problems.expect_prompt("reply.prompt", reply.prompt);
  if (reply.done) {
    problems.expect_count("reply.measures", reply.measures.size());
    for (const auto& [name, value] : reply.measures) problems.expect_number("reply.measures[" + name + "]", value);
    if (reply.answer) problems.expect_text("reply.answer", *reply.answer);
    if (reply.unscored) problems.expect_text("reply.unscored", *reply.unscored);
  }
  problems.raise();
}

void score_checked(Environment& environment, std::span<Reply> last_replies) {
  environment.score_group(last_replies);
  for (Reply& reply : last_replies) {
    reply.unscored.reset();
    try {
      check_reply(reply);
    } catch (const EnvironmentFailure& failure) {
      reply = {.text = failure.what(), .done = true, .outcome = Outcome::InfraFailed};
    }
  }
}

void check_text(const std::string& name, const std::string& text) {
  Problems problems;
  problems.expect_text(name, text);
  problems.raise();
}

void check_info(const std::vector<std::string>& ground_truth, const std::map<std::string, std::string>& info) {
  Problems problems;
  problems.expect_count("ground_truth", ground_truth.size());
  for (const std::string& text : ground_truth) problems.expect_text("ground_truth", text);
  problems.expect_count("info", info.size());
  for (const auto& [key, text] : info) problems.expect_text("info[" + key + "]", text);
  problems.raise();
}

std::unique_ptr<Environment> copy_environment(const Environment& environment,
                                              const std::function<std::unique_ptr<Environment>()>& make,
                                              std::span<const PlayedTurn> turns) {
  switch (environment.branching()) {
    case Branching::Replayed: return replay(make, turns);
    case Branching::Refused: throw EnvironmentFailure("it can be neither cloned nor replayed");
    case Branching::Cloned: break;
  }
  auto copy = environment.clone();
  if (!copy) throw EnvironmentFailure("clone() returned none");
  return copy;
}

}  // namespace carnot
