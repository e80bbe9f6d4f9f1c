// Any bytes are adapters that read back from their own JSON, or a message that names the file.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/hf/adapter_config.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(adapter_config) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lora = carnot::parse_adapter_config(text, "adapter_config.json");
  if (!lora.ok()) {
    CARNOT_CHECK(lora.error().message.starts_with("adapter_config.json:"), lora.error().message);
    return 0;
  }
  CARNOT_CHECK_GT(lora->rank, 0);
  const auto again = carnot::parse_adapter_config(carnot::adapter_config_json(*lora, "base"), "adapter_config.json");
  CARNOT_CHECK(again.ok() && *again == *lora, "adapters read back");
  return 0;
}
