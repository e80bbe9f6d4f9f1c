// Any bytes are an index of weight files, all of one folder, or a message that names the file.
#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "carnot/core/base/check.h"
#include "carnot/core/hf/safetensors_header.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(weight_index) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto files = carnot::parse_weight_map(text, "index.json");
  if (!files.ok()) {
    CARNOT_CHECK(files.error().message.starts_with("index.json:"), files.error().message);
    return 0;
  }
  for (const auto& [tensor, file] : *files)
    CARNOT_CHECK(std::filesystem::path(file).filename() == file && file.size() > 0 && file != "..", file);
  return 0;
}
