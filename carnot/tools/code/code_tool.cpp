#include "carnot/tools/code/code_tool.h"

#include <algorithm>
#include <cstdio>

#include "carnot/core/base/json.h"
#include "carnot/core/base/strings.h"
#include "carnot/tools/code/sandbox_fusion.h"
#include "carnot/tools/sandbox/python_sandbox.h"
#include "carnot/tools/toolbox/toolbox.h"

namespace carnot {
namespace {

class CodeTool final : public Tool {
 public:
  CodeTool(const std::string& name, std::shared_ptr<CodeRunner> runner, const CodeToolOptions& options)
      : description_{.name = name,
                     .description =
                         "Runs a Python program and returns what it prints. Every call starts fresh: nothing "
                         "of an earlier one is left. There is no network.",
                     .parameters = R"({"type": "object", "properties": {"code": {"type": "string", "description": )"
                                   R"("the program; what it shall return, it prints"}}, "required": ["code"]})"},
        runner_(std::move(runner)),
        options_(options) {}

  const ToolDescription& description() const override { return description_; }

  ToolResult call(std::string_view arguments, Deadline deadline) override {
    const auto given = parse_json_object(arguments, "arguments").value();
    const auto code = given.at("code").get<std::string>();
    const std::chrono::duration<double> left = deadline - std::chrono::steady_clock::now();
    if (left.count() <= 0) return {.text = "Error: no time is left.", .status = "timeout"};
    return code_tool_result(runner_->run({.code = std::string(without_code_fence(code)),
                                          .show_last = options_.show_last,
                                          .seconds = std::min(options_.sandbox.seconds, left.count())}),
                            options_);
  }

 private:
  ToolDescription description_;
  std::shared_ptr<CodeRunner> runner_;
  CodeToolOptions options_;
};

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", seconds);
  return text;
}

class CodeKind final : public ToolKind {
 public:
  void fields(FieldVisitor& visit) override {
    section(visit, "sandbox", options_, "where code of the tools python and code_interpreter runs (docs/sandbox.md)");
  }

  /// Tools of both names share a sandbox.
  void open(std::span<const ToolEntry> entries, const ToolTimes&, OpenedTools& opened) const override {
    const auto runner = open_code_runner(options_);
    if (!runner) return opened.problems.push_back("env.sandbox: " + runner.error().message);
    for (const ToolEntry& entry : entries) opened.add(entry, make_code_tool(entry.text, *runner, options_));
  }

 private:
  CodeToolOptions options_;
};

}  // namespace

void CodeToolOptions::fields(FieldVisitor& visit) {
  visit.field("url", url,
              "of a server of SandboxFusion's API (POST /run_code) that runs the code; empty: this machine");
  visit.field("show_last", show_last, "print the value of a last line that is an expression");
  sandbox.fields(visit);
}

Result<std::shared_ptr<CodeRunner>> open_code_runner(const CodeToolOptions& options) {
  if (!options.url.empty()) return open_sandbox_fusion(options.url, options.sandbox);
  CARNOT_ASSIGN_OR_RETURN(auto sandbox, PythonSandbox::open(options.sandbox));
  return std::shared_ptr<CodeRunner>(std::move(sandbox));
}

std::shared_ptr<Tool> make_code_tool(const std::string& name, std::shared_ptr<CodeRunner> runner,
                                     const CodeToolOptions& options) {
  return std::make_shared<CodeTool>(name, std::move(runner), options);
}

ToolResult code_tool_result(const CodeResult& result, const CodeToolOptions& options) {
  std::string text = result.standard_output;
  const auto add = [&](const std::string& more) {
    if (!text.empty() && !text.ends_with('\n')) text += '\n';
    text += more;
  };
  if (result.truncated) add("[the output is longer; this is its beginning]\n");
  if (!result.standard_error.empty()) add(result.standard_error);
  if (result.status == CodeStatus::Timeout)
    add("Error: the program was stopped: it takes longer than " + seconds_text(options.sandbox.seconds) + " s.");
  if (result.status == CodeStatus::Memory && result.exit_code > 128)
    add("Error: the program was stopped: it takes more than " + std::to_string(options.sandbox.memory_mb) +
        " MB of memory.");
  if (result.status == CodeStatus::Refused && result.exit_code > 128)
    add("Error: the program was stopped: the sandbox does not allow what it did.");
  while (text.ends_with('\n')) text.pop_back();
  if (result.status == CodeStatus::Ok && text.empty())
    return {.text = "The program printed nothing.", .status = "empty"};
  if (text.empty()) text = "Error: the program ended with exit code " + std::to_string(result.exit_code) + ".";
  return {.text = std::move(text),
          .status = result.status == CodeStatus::Ok        ? "ok"
                    : result.status == CodeStatus::Timeout ? "timeout"
                                                           : "error"};
}

std::string_view without_code_fence(std::string_view code) {
  const std::string_view fenced = trim(code);
  const std::size_t first_line = fenced.find('\n');
  if (!fenced.starts_with("```") || first_line == std::string_view::npos) return code;
  const std::string_view inner = fenced.substr(first_line + 1);
  return inner.ends_with("```") ? inner.substr(0, inner.size() - 3) : inner;
}

std::unique_ptr<ToolKind> make_code_kind() { return std::make_unique<CodeKind>(); }

}  // namespace carnot
