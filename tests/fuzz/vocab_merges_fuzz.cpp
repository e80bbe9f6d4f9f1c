// Any three strings, separated by zero bytes, are vocab.json, merges.txt and tokenizer_config.json of a tokenizer that
// encodes anything, or a message that names the folder.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/text/tokenizer.h"
#include "tests/fuzz/scratch_folder.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(vocab_merges) {
  static const carnot::fuzz::ScratchFolder folder("vocab_merges");
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  for (const char* name : {"vocab.json", "merges.txt", "tokenizer_config.json"}) {
    const std::string_view text = rest.substr(0, rest.find('\0'));
    folder.write(name, text);
    rest.remove_prefix(std::min(rest.size(), text.size() + 1));
  }
  const auto tokenizer = carnot::Tokenizer::load(folder.path());
  if (!tokenizer.ok()) {
    CARNOT_CHECK(tokenizer.error().message.starts_with(folder.path().string()), tokenizer.error().message);
    return 0;
  }
  const std::string_view text = std::string_view(reinterpret_cast<const char*>(data), size).substr(0, 1024);
  for (const carnot::TokenId id : tokenizer->encode_content(text)) {
    CARNOT_CHECK(tokenizer->has(id), "an encoded id is a token");
    CARNOT_CHECK(!tokenizer->is_control(id), "a control token in text is spelled out");
  }
  return 0;
}
