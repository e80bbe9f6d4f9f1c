// env/tool.h -- a function that a policy may call: name, JSON schema, and the call itself under a deadline.
//
// Environments offer tools by their descriptions (Opening::tools) and call them in step(), on their worker thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/base/json_schema.h"
#include "carnot/core/base/result.h"

namespace carnot {

/// What the policy reads about a tool.
struct ToolDescription {
  std::string name{};                                                  ///< letters, digits, '_' and '-'
  std::string description{};                                           ///< a sentence or two
  std::string parameters = R"({"type": "object", "properties": {}})";  ///< JSON schema of the arguments

  /// {"type": "function", "function": {...}}, as chat templates take it. REQUIRES: check() is ok.
  std::string json() const;

  /// Says what is wrong with name or schema.
  Status check() const;
};

struct ToolResult {
  std::string text{};
  std::string status = "ok";  ///< also "empty", "error", "timeout", "unknown_tool", "bad_arguments"
};

class Tool {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~Tool() = default;
  virtual const ToolDescription& description() const = 0;

  /// Answers a call. `arguments`: the text of a JSON object. Returns by the deadline, with status "timeout" where the
  /// work is not done by then. Arguments that make no sense are a result with status "bad_arguments", which the policy
  /// reads. What is not the policy's fault (a server that is away) is an exception: the trajectory is then an
  /// infrastructure failure. Several threads may call at once.
  virtual ToolResult call(std::string_view arguments, Deadline deadline) = 0;
};

/// The tools of one environment, by name.
class ToolSet {
 public:
  /// REQUIRES: names differ and every description is right.
  explicit ToolSet(std::vector<std::shared_ptr<Tool>> tools);

  std::vector<ToolDescription> descriptions() const;

  /// Calls the tool of that name; status "unknown_tool" and the known names if it is unknown, and
  /// "bad_arguments" where `arguments` is not the text of a JSON object.
  ToolResult call(std::string_view name, std::string_view arguments, Tool::Deadline deadline) const;

 private:
  std::vector<std::shared_ptr<Tool>> tools_;
};

/// The schema of a tool's arguments, without its regular expressions: those are left to the tool. The error says what
/// is wrong with name or schema.
Result<std::shared_ptr<const JsonSchema>> arguments_schema(const ToolDescription& tool);

/// Calls `tool` where the arguments fit the schema, and answers with status "bad_arguments" and what is wrong where
/// they do not.
std::shared_ptr<Tool> checked(std::shared_ptr<Tool> tool, std::shared_ptr<const JsonSchema> schema);

}  // namespace carnot
