// Whatever a file of passages holds is read or refused. The first byte chooses lines of JSON or of text.
#include <cstddef>
#include <cstdint>

#include "carnot/retrieval/bm25/passage_source.h"
#include "carnot/tools/search/passages.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(passages) {
  if (size == 0) return 0;
  (void)carnot::parse_passages({reinterpret_cast<const char*>(data + 1), size - 1},
                               data[0] % 2 == 0 ? "passages.jsonl" : "passages.txt");
  (void)carnot::parse_passage_row({reinterpret_cast<const char*>(data + 1), size - 1}, 0, "row");
  return 0;
}
