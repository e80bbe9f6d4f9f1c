// Any bytes are a compressed file, read whole, or a message that names it.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/core/base/file.h"
#include "tests/fuzz/scratch_folder.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(xz) {
  static const carnot::fuzz::ScratchFolder folder("xz");
  const auto file = folder.write("rows.jsonl.xz", {reinterpret_cast<const char*>(data), size});
  const auto text = carnot::read_maybe_compressed(file);
  CARNOT_CHECK(text.ok() || text.error().message.starts_with(file.string()), "an error names the file");
  return 0;
}
