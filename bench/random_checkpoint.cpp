// A Hugging Face folder with random weights of a given shape, for measuring what a model of that size needs.
//
//   random_checkpoint CONFIG TOKENIZER FOLDER [SEED]
//
// CONFIG is a config.json (bench/shapes has some), TOKENIZER a folder or tokenizer.json. Weights are float32.
#include <ATen/core/Tensor.h>

#include <cstdlib>
#include <iostream>

#include "carnot/core/base/file.h"
#include "carnot/core/hf/model_config_file.h"
#include "carnot/core/hf/safetensors.h"
#include "carnot/core/hf/weights.h"
#include "carnot/core/text/tokenizer.h"

namespace carnot {
namespace {

constexpr double kInitStd = 0.02;

Status make_checkpoint(const std::string& config_path, const std::string& tokenizer_path,
                       const std::filesystem::path& folder, std::uint64_t seed) {
  const auto text = read_file(config_path);
  if (!text) return text.error();
  const auto config = parse_model_config(*text, config_path);
  if (!config) return config.error();
  const auto tokenizer = Tokenizer::load(tokenizer_path);
  if (!tokenizer) return tokenizer.error();
  if (tokenizer->vocab_size() > config->vocab_size)
    return Error{config_path + ": vocab_size: expected at least the tokenizer's " +
                 std::to_string(tokenizer->vocab_size())};
  if (const Status made = make_folder(folder); !made) return made;
  if (const Status written = write_file_atomically(folder / "tokenizer.json", tokenizer->json()); !written)
    return written;
  if (const Status written = write_file_atomically(folder / "config.json", *text); !written) return written;
  const Model model(*config, seed, at::TensorOptions().dtype(at::kFloat), kInitStd);
  return write_safetensors(folder / "model.safetensors", file_tensors(stored_weights(model)), {{"format", "pt"}});
}

}  // namespace
}  // namespace carnot

int main(int count, char** values) {
  if (count < 4 || count > 5) {
    std::cerr << "usage: random_checkpoint CONFIG TOKENIZER FOLDER [SEED]\n";
    return 2;
  }
  const std::uint64_t seed = count == 5 ? std::strtoull(values[4], nullptr, 10) : 0;
  const carnot::Status made = carnot::make_checkpoint(values[1], values[2], values[3], seed);
  if (made) return 0;
  std::cerr << "random_checkpoint: " << made.error().message << "\n";
  return 1;
}
