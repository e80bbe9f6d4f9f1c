// Whatever bytes another process sends as groups are read or refused; what is read satisfies the trees' invariants and
// is written as it was read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "carnot/core/data/group_bytes.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(group_bytes) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto groups = carnot::groups_of_bytes(bytes);
  if (groups && carnot::groups_of_bytes(carnot::bytes_of_groups(*groups)).ok() == false) std::abort();
  return 0;
}
