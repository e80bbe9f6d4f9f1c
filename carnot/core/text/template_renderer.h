// text/template_renderer.h -- a chat template (Jinja), rendered by the engine that Hugging Face uses.
//
// python/carnot_chat_template.py is the engine: one process with jinja2, sandboxed, with limits of time and memory.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "carnot/core/base/result.h"
#include "carnot/core/data/message.h"

namespace carnot {

class PeerPool;

/// What a model folder says about its conversations.
struct ChatTemplate {
  std::string jinja{};
  std::map<std::string, std::string> tokens{};  ///< texts that the template may name: bos_token, eos_token, ...
  std::optional<bool> thinking{};               ///< what the template is told where it can switch thinking
};

struct TemplateRendererOptions {
  std::string python{};  ///< the interpreter; empty: own_python()
  double start_seconds = 60;
  double call_seconds = 10;  ///< what one call may take
};

/// Messages as a template gets them. Arguments of calls and tools are JSON objects.
struct TemplateInput {
  std::vector<Message> messages{};
  std::vector<std::string> tools{};
  bool assistant_is_next = false;  ///< add_generation_prompt
  bool tools_in_system = false;    ///< the tools are a field of the system message, a text
  std::optional<bool> thinking{};  ///< enable_thinking and thinking; absent: neither is defined
};

class TemplateRenderer {
 public:
  /// Starts the process. The error says what is missing (Python, jinja2) or where the template is not valid Jinja.
  static Result<std::unique_ptr<TemplateRenderer>> start(const ChatTemplate& chat,
                                                         const TemplateRendererOptions& options = {});
  ~TemplateRenderer();

  /// What the template writes for each of `inputs`; an error where it refuses that one, with its words. The whole call
  /// fails if the process ends, takes too long or writes too much; the next call starts it again. Any thread.
  Result<std::vector<Result<std::string>>> render(std::span<const TemplateInput> inputs) const;

 private:
  explicit TemplateRenderer(std::unique_ptr<PeerPool> pool);
  std::unique_ptr<PeerPool> pool_;
};

}  // namespace carnot
