// Any bytes are a file of vectors: refused, or searched and verified.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/retrieval/dense/vector_file.h"
#include "tests/fuzz/scratch_folder.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(vector_file) {
  static const carnot::fuzz::ScratchFolder folder("vector_file");
  static carnot::ThreadPool one_thread(1);
  const auto file = folder.write("any.vectors", {reinterpret_cast<const char*>(data), size});
  const auto vectors = carnot::VectorFile::open(file);
  if (!vectors) {
    CARNOT_CHECK(vectors.error().message.starts_with(file.string() + ": "), vectors.error().message);
    return 0;
  }
  const std::vector<std::vector<float>> queries(1,
                                                std::vector<float>(static_cast<std::size_t>((*vectors)->dimensions())));
  CARNOT_CHECK((*vectors)->search(queries, 3, one_thread).at(0).size() <= 3, "three at most");
  (void)(*vectors)->verify();
  return 0;
}
