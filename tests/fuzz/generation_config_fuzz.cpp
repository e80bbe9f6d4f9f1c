// Any bytes are settings of generating, or a message that names the file.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/hf/generation_config.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(generation_config) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = carnot::parse_generation_config(text, "generation_config.json");
  if (!config.ok()) {
    CARNOT_CHECK(config.error().message.starts_with("generation_config.json:"), config.error().message);
    return 0;
  }
  const auto again =
      carnot::parse_generation_config(carnot::generation_config_json(config->eos_tokens), "generation_config.json");
  CARNOT_CHECK(again.ok() && again->eos_tokens == config->eos_tokens, "end tokens read back");
  return 0;
}
