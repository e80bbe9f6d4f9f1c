// Any bytes are a tensor file whose entries cover its data exactly, or a message that names the file.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/hf/safetensors_header.h"
#include "tests/fuzz/target.h"

namespace {

std::uint64_t bytes_of(const carnot::TensorEntry& entry) {
  auto bytes = static_cast<std::uint64_t>(carnot::element_size(entry.dtype));
  for (std::int64_t size : entry.shape) bytes *= static_cast<std::uint64_t>(size);
  return bytes;
}

}  // namespace

CARNOT_FUZZ_TARGET(safetensors) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  const auto header = carnot::parse_safetensors_header(file, "x.safetensors");
  if (!header.ok()) {
    CARNOT_CHECK(header.error().message.starts_with("x.safetensors: "), header.error().message);
    return 0;
  }
  std::uint64_t end = header->entries.empty() ? file.size() : header->entries.front().begin;
  for (const carnot::TensorEntry& entry : header->entries) {
    CARNOT_CHECK_EQ(entry.begin, end);
    CARNOT_CHECK_EQ(entry.end - entry.begin, bytes_of(entry));
    end = entry.end;
  }
  CARNOT_CHECK_EQ(end, file.size());
  return 0;
}
