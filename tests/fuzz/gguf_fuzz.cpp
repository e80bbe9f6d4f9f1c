// Any bytes are a GGUF file whose tensors lie in it, a model that can be built and a tokenizer that can be read, or a
// message that names the file.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "carnot/core/base/check.h"
#include "carnot/core/gguf/tokenizer.h"
#include "carnot/core/hf/gguf_model.h"
#include "carnot/core/hf/gguf_weights.h"
#include "carnot/core/text/tokenizer.h"
#include "tests/fuzz/target.h"

namespace {

void check_error(const carnot::Error& error) { CARNOT_CHECK(error.message.starts_with("x.gguf:"), error.message); }

void check_model(const carnot::GgufFile& file) {
  const auto config = carnot::gguf_model_config(file, "x.gguf");
  if (!config.ok()) return check_error(config.error());
  CARNOT_CHECK(carnot::check_model_config(*config).ok(), "what is read can be built");
  const auto weights = carnot::gguf_weights(file, *config, "x.gguf");
  if (!weights.ok()) return check_error(weights.error());
  for (const carnot::GgufWeight& weight : *weights) {
    const carnot::GgufTensor& tensor = *weight.tensor;
    std::size_t values = 1;
    for (const std::int64_t size : tensor.shape) values *= static_cast<std::size_t>(size);
    std::vector<float> numbers(values);
    carnot::dequantize(*tensor.type, tensor.bytes, numbers);
  }
}

void check_tokenizer(const carnot::GgufFile& file) {
  const auto made = carnot::read_gguf_tokenizer(file, 512, "x.gguf");
  if (!made.ok()) return check_error(made.error());
  CARNOT_CHECK(carnot::Tokenizer::parse(made->tokenizer_json, "x").ok(), "what is made can be read");
}

}  // namespace

CARNOT_FUZZ_TARGET(gguf) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto file = carnot::parse_gguf(bytes, "x.gguf");
  if (!file.ok()) {
    check_error(file.error());
    return 0;
  }
  for (const carnot::GgufTensor& tensor : file->tensors)
    CARNOT_CHECK(
        tensor.bytes.data() >= bytes.data() && tensor.bytes.data() + tensor.bytes.size() <= bytes.data() + size,
        "tensors lie in the file");
  check_model(*file);
  check_tokenizer(*file);
  return 0;
}
