#include "carnot/core/text/template_renderer.h"

#include <nlohmann/json.hpp>

#include "carnot/core/subprocess/answer_reader.h"
#include "carnot/core/subprocess/peer.h"
#include "carnot/core/subprocess/python_folder.h"

namespace carnot {
namespace {

using Object = nlohmann::json;

Object message_json(const Message& message) {
  Object one{{"role", message.role}, {"content", message.content}};
  if (!message.tool_call_id.empty()) one["tool_call_id"] = message.tool_call_id;
  for (const ToolCall& call : message.tool_calls)
    one["tool_calls"].push_back({{"name", call.name}, {"arguments", call.arguments}, {"id", call.id}});
  return one;
}

// Arguments and tools travel as text: the order of their keys is what a policy reads.
Object input_json(const TemplateInput& input) {
  Object messages = Object::array();
  for (const Message& message : input.messages) messages.push_back(message_json(message));
  Object one{{"messages", std::move(messages)},
             {"tools", input.tools},
             {"generate", input.assistant_is_next},
             {"tools_in_system", input.tools_in_system}};
  if (input.thinking) one["thinking"] = *input.thinking;
  return one;
}

std::vector<Result<std::string>> read_texts(const PeerAnswer& answer, std::size_t expected) {
  std::vector<Result<std::string>> texts;
  AnswerReader reader(answer);
  reader.objects("rendered", [&](AnswerReader& one) {
    std::string text, refused;
    one.text("text", text);
    one.text("refused", refused);
    if (one.has("text"))
      texts.emplace_back(std::move(text));
    else
      texts.emplace_back(Error{"the template says: " + refused});
  });
  if (texts.size() != expected) reader.refuse("rendered", std::to_string(expected) + " texts");
  reader.finish();
  return texts;
}

}  // namespace

TemplateRenderer::TemplateRenderer(std::unique_ptr<PeerPool> pool) : pool_(std::move(pool)) {}
TemplateRenderer::~TemplateRenderer() = default;

Result<std::unique_ptr<TemplateRenderer>> TemplateRenderer::start(const ChatTemplate& chat,
                                                                  const TemplateRendererOptions& options) {
  CARNOT_ASSIGN_OR_RETURN(const auto folder, python_folder());
  const std::string python = options.python.empty() ? own_python(folder) : options.python;
  PeerOptions peer{.name = "chat template",
                   .program = {.command = {python, (folder / "carnot_chat_template.py").string()},
                               .environment = python_variables()},
                   .start_seconds = options.start_seconds,
                   .call_seconds = options.call_seconds};
  Object hello{{"op", "hello"}, {"protocol", 1}, {"template", chat.jinja}, {"tokens", chat.tokens}};
  auto pool = std::make_unique<PeerPool>(std::move(peer), std::move(hello), 1);
  CARNOT_RETURN_IF_ERROR(pool->start());
  return std::unique_ptr<TemplateRenderer>(new TemplateRenderer(std::move(pool)));
}

Result<std::vector<Result<std::string>>> TemplateRenderer::render(std::span<const TemplateInput> inputs) const {
  Object conversations = Object::array();
  for (const TemplateInput& input : inputs) conversations.push_back(input_json(input));
  try {
    const PeerAnswer answer = pool_->take()->call({{"op", "render"}, {"conversations", std::move(conversations)}});
    return read_texts(answer, inputs.size());
  } catch (const PeerFailure& failure) {
    return Error{failure.what()};
  }
}

}  // namespace carnot
