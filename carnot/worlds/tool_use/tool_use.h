// worlds/tool_use/tool_use.h -- gives the episodes of an environment the tools that a recipe lists
// (tools/toolbox/toolbox.h).
//
// A response that calls tools is answered with their results, and the environment beneath does not hear of it; the
// first response without calls is its response. What the policy gets wrong (an unknown tool, arguments that do not fit,
// a call that cannot be read) is a result that says so. What a tool's server gets wrong is an exception, and the
// trajectory an infrastructure failure.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "carnot/core/env/environment.h"
#include "carnot/tools/toolbox/toolbox.h"

namespace carnot {

/// How a policy calls tools.
enum class ToolCallStyle {
  Chat,  ///< as the chat format has it; tools are offered in its way, and results are tool messages
  /// <python>print(1)</python>: a pair of tags with the tool's name around its one argument. The response stops there,
  /// and ` <result>`, the result and `</result>` continue the same message (ARPO, arXiv:2507.19849; AEPO; A2TGPO). The
  /// prompt has to tell.
  Tags,
};

/// The words of recipes for these.
inline const std::vector<std::string> kToolCallStyles{"chat", "tags"};

struct ToolUseOptions {
  std::vector<std::string> tools{};
  ToolCallStyle tool_calls = ToolCallStyle::Chat;
  int max_tool_calls = 8;
  double tool_timeout = 30;
  double tool_start_timeout = 60;
  int tool_output = 4000;
  ToolKinds kinds = make_tool_kinds();  ///< with their options

  void fields(FieldVisitor& visit);
};

/// What all episodes share.
class ToolUse {
 public:
  /// Starts the tools. Without any, episodes stay as they are. The error names each entry that cannot be used.
  static Result<std::shared_ptr<const ToolUse>> open(const ToolUseOptions& options);

  /// `tag_arguments`: of Tags, the name of the argument of each tool, in the toolbox's order.
  ToolUse(ToolUseOptions options, std::shared_ptr<const Toolbox> toolbox, std::vector<std::string> tag_arguments = {})
      : options_(std::move(options)), toolbox_(std::move(toolbox)), tag_arguments_(std::move(tag_arguments)) {}

  /// `environment` with the tools. Its own tools stay; in a response that calls both, it hears of its own calls only.
  /// Branches are refused if a tool changes what all episodes see, and played again where each has a server of its
  /// own.
  static std::unique_ptr<Environment> add_to(std::unique_ptr<Environment> environment,
                                             const std::shared_ptr<const ToolUse>& tools);

  const ToolUseOptions& options() const { return options_; }
  const Toolbox& toolbox() const { return *toolbox_; }

  /// The call that a response of style Tags ends with; empty if it ends otherwise.
  std::optional<ToolCall> tagged_call(std::string_view response) const;

 private:
  ToolUseOptions options_;
  std::shared_ptr<const Toolbox> toolbox_;  ///< none: no tools
  std::vector<std::string> tag_arguments_;
};

/// `text` cut after `longest` characters, with a mark that says how many are left out.
std::string cut_output(std::string text, int longest);

}  // namespace carnot
