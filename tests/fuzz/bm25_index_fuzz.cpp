// Any bytes are an index file: refused, or searched and found damaged, or answered.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "carnot/core/base/check.h"
#include "carnot/retrieval/bm25/index_file.h"
#include "tests/fuzz/scratch_folder.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(bm25_index) {
  static const carnot::fuzz::ScratchFolder folder("bm25_index");
  const auto file = folder.write("any.bm25", {reinterpret_cast<const char*>(data), size});
  const auto index = carnot::Bm25File::open(file);
  if (!index) {
    CARNOT_CHECK(index.error().message.starts_with(file.string() + ": "), index.error().message);
    return 0;
  }
  (void)(*index)->verify();
  try {
    for (const char* query : {"capital of peru", "lima lima llama", "zebra", ""})
      for (const carnot::SearchHit& hit : (*index)->search(query, 5)) (void)(*index)->passage(hit.document);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(8, (*index)->num_passages()); ++i) (void)(*index)->passage(i);
  } catch (const carnot::DamagedIndex& damage) {
    CARNOT_CHECK(std::strlen(damage.what()) > file.string().size(), damage.what());
  }
  return 0;
}
