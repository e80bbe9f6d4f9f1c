// testing/chat_templates.h -- chat formats made from the templates in tests/golden/chat_templates.
#pragma once

#include <cstdlib>
#include <memory>
#include <string>

#include "carnot/core/base/file.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/template_chat.h"
#include "testing/paths.h"

namespace carnot::testing {

/// Bytes, "north", and the tokens that the templates write.
inline const Tokenizer& template_tokenizer() {
  static const Tokenizer tokenizer =
      Tokenizer::parse(train_byte_level_bpe(std::vector<std::string>{"north"}, {.vocab_size = 310,
                                                                                .added_tokens = {"<|im_start|>",
                                                                                                 "<|im_end|>",
                                                                                                 "<|begin_of_text|>",
                                                                                                 "<|start_header_id|>",
                                                                                                 "<|end_header_id|>",
                                                                                                 "<|eot_id|>",
                                                                                                 "<s>",
                                                                                                 "</s>",
                                                                                                 "[INST]",
                                                                                                 "[/INST]",
                                                                                                 "[AVAILABLE_TOOLS]",
                                                                                                 "[/AVAILABLE_TOOLS]",
                                                                                                 "[TOOL_CALLS]",
                                                                                                 "[TOOL_RESULTS]",
                                                                                                 "[/TOOL_RESULTS]",
                                                                                                 "<start_of_turn>",
                                                                                                 "<end_of_turn>",
                                                                                                 "<|system|>",
                                                                                                 "<|user|>",
                                                                                                 "<|assistant|>",
                                                                                                 "<|end|>",
                                                                                                 "<|User|>",
                                                                                                 "<|Assistant|>"}})
                           .value(),
                       "templates")
          .value();
  return tokenizer;
}

/// Templates are rendered by python/ and .venv of the source tree, regardless of the build folder.
inline void use_source_python() { ::setenv("CARNOT_PYTHON", source_path("python").c_str(), 0); }

inline ChatTemplate template_of(const std::string& jinja) {
  const bool llama3 = jinja.find("<|start_header_id|>") != std::string::npos;
  return {
      .jinja = jinja,
      .tokens = {{"bos_token", llama3 ? "<|begin_of_text|>" : "<s>"}, {"eos_token", llama3 ? "<|eot_id|>" : "</s>"}}};
}

inline std::string template_text(const std::string& name) {
  return read_file(source_path("tests/golden/chat_templates/" + name + ".jinja")).value();
}

/// The format of tests/golden/chat_templates/NAME.jinja. REQUIRES: use_source_python().
inline std::unique_ptr<TemplateChat> golden_template_chat(const std::string& name) {
  return TemplateChat::start(template_of(template_text(name)), template_tokenizer()).value();
}

}  // namespace carnot::testing
