// Whatever a policy says where tools are offered: each format reads calls, or says what is wrong, never both, and what
// it read can be said and read again. The first byte chooses the format.
#include <cstddef>
#include <cstdint>
#include <string>

#include "carnot/core/base/check.h"
#include "carnot/core/text/bpe_training.h"
#include "carnot/core/text/chat.h"
#include "carnot/core/text/chat_families.h"
#include "tests/fuzz/target.h"

namespace {

const carnot::Tokenizer& tokenizer() {
  static const carnot::Tokenizer kTokenizer =
      carnot::Tokenizer::parse(
          carnot::train_byte_level_bpe(
              std::vector<std::string>{"name arguments"},
              {.vocab_size = 290,
               .added_tokens = {"<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>",
                                "<|end_header_id|>", "<|eot_id|>", "<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]"}})
              .value(),
          "small")
          .value();
  return kTokenizer;
}

}  // namespace

CARNOT_FUZZ_TARGET(tool_calls) {
  static const auto families = [] {
    std::vector<std::unique_ptr<carnot::ChatFamily>> all;
    for (const char* name : {"qwen2.5", "llama3.1", "mistral"})
      all.push_back(carnot::make_chat_family(name, tokenizer()).value());
    return all;
  }();
  if (size == 0) return 0;
  const carnot::ChatFamily& family = *families[data[0] % families.size()];
  const auto read = family.parse_response({reinterpret_cast<const char*>(data + 1), size - 1});
  CARNOT_CHECK(read.problem.empty() || read.tool_calls.empty(), read.problem);
  if (read.tool_calls.empty() || (data[0] % families.size() == 1 && read.tool_calls.size() != 1)) return 0;
  const std::string said = tokenizer().decode(family.spoken_calls("", read.tool_calls, ""));
  const auto again = family.parse_response(said);  // an argument may spell the format's own tag
  CARNOT_CHECK(!again.problem.empty() || again.tool_calls == read.tool_calls, said);
  return 0;
}
