// Requests to a retriever and its answers are read or refused; what was read can be written and read again.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/retrieval/retriever/messages.h"
#include "tests/fuzz/target.h"

CARNOT_FUZZ_TARGET(retrieval) {
  if (size == 0) return 0;
  const std::string_view body(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    const auto request = carnot::parse_retrieve_request(body, 3);
    if (!request) return 0;
    const auto again = carnot::parse_retrieve_request(carnot::retrieve_request(request->queries, request->topk), 1);
    CARNOT_CHECK_EQ(again.value().queries.size(), request->queries.size());
    CARNOT_CHECK_EQ(again.value().topk, request->topk);
    return 0;
  }
  const auto answer = carnot::parse_retrieve_answer(body, 1, "answer");
  if (!answer) return 0;
  CARNOT_CHECK(carnot::parse_retrieve_answer(carnot::retrieve_answer(*answer, true), 1, "again").ok(), "read again");
  return 0;
}
