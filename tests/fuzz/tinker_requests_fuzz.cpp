// Any bytes are a request of Tinker's client within the bounds of serving/tinker/requests.h and wire.h, or an error.
#include <cstddef>
#include <cstdint>

#include "carnot/core/base/check.h"
#include "carnot/serving/tinker/requests.h"
#include "carnot/serving/tinker/wire.h"
#include "tests/fuzz/target.h"

namespace {

template <class Request, class Check>
void expect(const carnot::Result<Request>& read, const Check& check) {
  if (read)
    check(*read);
  else
    CARNOT_CHECK(!read.error().message.empty(), "refused without a message");
}

void check_datum(const carnot::TinkerDatum& datum) {
  for (const auto& [name, tensor] : datum.inputs) {
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.shape) elements *= size;
    CARNOT_CHECK_EQ(elements, static_cast<std::int64_t>(tensor.values.size()));
  }
}

}  // namespace

CARNOT_FUZZ_TARGET(tinker_requests) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto nothing = [](const auto&) {};
  expect(carnot::parse_forward_backward(text), [](const carnot::ForwardBackwardRequest& request) {
    for (const carnot::TinkerDatum& datum : request.data) check_datum(datum);
  });
  expect(carnot::parse_sample(text), [](const carnot::TextRequest& request) {
    CARNOT_CHECK(!request.prompt.empty() && request.samples >= 1 && request.max_tokens.value_or(1) >= 1, "a text");
    CARNOT_CHECK(request.temperature >= 0 && request.top_p > 0 && request.top_k >= 0, "sampling");
    for (const carnot::TokenId token : request.prompt) CARNOT_CHECK(token >= 0, "a token id");
  });
  expect(carnot::parse_create_model(text), [](const carnot::CreateModelRequest& request) {
    CARNOT_CHECK(request.rank >= 1 && (request.train_attention || request.train_mlp), "an adapter");
  });
  expect(carnot::parse_optim_step(text), nothing);
  expect(carnot::parse_save_weights(text), nothing);
  expect(carnot::parse_load_weights(text), nothing);
  expect(carnot::parse_sampling_session(text), nothing);
  return 0;
}
