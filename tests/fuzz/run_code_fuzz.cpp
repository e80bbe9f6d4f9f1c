// Whatever a client or a server of SandboxFusion's API sends becomes a call or a result, or an error. The first byte
// chooses what is read.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/tools/code/sandbox_fusion.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(run_code) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    const auto call = carnot::parse_run_code(text, 30);
    if (call)
      for (const auto& [name, content] : call->files) CARNOT_CHECK(name.find('\n') == std::string::npos, name);
  } else {
    const auto result = carnot::parse_run_code_answer(text, "server");
    if (result) CARNOT_CHECK(carnot::parse_run_code_answer(carnot::run_code_answer(*result), "again").ok(), "again");
  }
  return 0;
}
