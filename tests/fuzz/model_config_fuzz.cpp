// Any bytes are a shape that can be built and that reads back from its own JSON, or a message that names the file.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/nn/model_config.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(model_config) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = carnot::parse_model_config(text, "config.json");
  if (!config.ok()) {
    CARNOT_CHECK(config.error().message.starts_with("config.json:"), config.error().message);
    return 0;
  }
  CARNOT_CHECK(carnot::check_model_config(*config).ok(), "what is read can be built");
  const std::string json = carnot::model_config_json(*config, "float32");
  const auto again = carnot::parse_model_config(json, "config.json");
  CARNOT_CHECK(again.ok(), json);
  CARNOT_CHECK(carnot::model_config_json(*again, "float32") == json, json);
  return 0;
}
